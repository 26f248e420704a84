"""Audio: spectrograms and what is computed from them, windows, and WAV files. The datasets ESC50 and TESS are not available yet."""

from oar.audio import backends, features, functional
from oar.audio.backends.wave_backend import info, load, save

__all__ = ["backends", "features", "functional", "info", "load", "save"]
