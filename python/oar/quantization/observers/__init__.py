"""Observers: they remember what scales are derived from."""

from oar.quantization.observers.abs_max import AbsmaxObserver
from oar.quantization.observers.groupwise import GroupWiseWeightObserver

__all__ = ["AbsmaxObserver", "GroupWiseWeightObserver"]
