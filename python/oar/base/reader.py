"""Where Paddle's older programs switch pinned memory off."""

from oar.io.reader import use_pinned_memory

__all__ = ["use_pinned_memory"]
