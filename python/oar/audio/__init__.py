"""Audio: spectrograms and what is computed from them, windows, WAV files and datasets."""

from oar.audio import backends, datasets, features, functional
from oar.audio.backends.wave_backend import info, load, save

__all__ = ["backends", "datasets", "features", "functional", "info", "load", "save"]
