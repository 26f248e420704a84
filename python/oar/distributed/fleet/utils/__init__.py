"""Helpers for the training of large models."""

from oar.distributed.fleet.recompute import recompute
from oar.distributed.fleet.utils import log_util

__all__ = ["log_util", "recompute"]
