"""Automatic mixed precision."""

from oar.amp.auto_cast import (
    amp_guard, auto_cast, get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_enabled)

__all__ = ["amp_guard", "auto_cast", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_enabled"]
