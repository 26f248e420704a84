"""Which code reads and writes audio files. There is one: ``wave_backend``, for WAV files."""

from oar.audio.backends.registry import get_current_backend, list_available_backends, set_backend

__all__ = ["get_current_backend", "list_available_backends", "set_backend"]
