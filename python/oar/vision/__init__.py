"""Functions for images."""

from oar.vision import ops

__all__ = ["ops"]
