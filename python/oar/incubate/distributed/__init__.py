"""Incubating names for training of large models."""

from oar.incubate.distributed import fleet

__all__ = ["fleet"]
