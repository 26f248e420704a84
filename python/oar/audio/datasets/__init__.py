"""Datasets of sounds, from local files or from the web."""

from oar.audio.datasets.esc50 import ESC50
from oar.audio.datasets.tess import TESS

__all__ = ["ESC50", "TESS"]
