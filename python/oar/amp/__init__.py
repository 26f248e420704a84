"""Automatic mixed precision."""

from oar.amp.auto_cast import amp_guard, auto_cast

__all__ = ["amp_guard", "auto_cast"]
