"""Incubating names for training of large models."""

from oar.incubate.distributed import fleet, models

__all__ = ["fleet", "models"]
