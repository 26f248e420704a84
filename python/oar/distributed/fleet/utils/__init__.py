"""Helpers for the training of large models."""

from oar.distributed.fleet.recompute import recompute

__all__ = ["recompute"]
