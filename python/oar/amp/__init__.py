"""Automatic mixed precision."""

from __future__ import annotations

from typing import Any

from oar._places import place_of
from oar.amp.auto_cast import (
    amp_guard, auto_cast, get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_enabled)
from oar.device._plugged import available
from oar.framework import core

__all__ = [
    "amp_guard", "auto_cast", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
    "is_autocast_enabled", "is_bfloat16_supported", "is_float16_supported",
]  # fmt: skip


def is_float16_supported(device: Any = None) -> bool:
    """Whether the ops of a device take float16: on the CPU all do.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.

    Returns:
        a bool; False for a plug-in's device, which has the dtypes that its kernels have.

    Examples:
        >>> import oar
        >>> oar.amp.is_float16_supported('cpu')
        True
    """
    return core.is_float16_supported(place_of(available("is_float16_supported", device)))


def is_bfloat16_supported(device: Any = None) -> bool:
    """Whether the ops of a device take bfloat16: on the CPU all do.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.

    Returns:
        a bool; False for a plug-in's device, which has the dtypes that its kernels have.

    Examples:
        >>> import oar
        >>> oar.amp.is_bfloat16_supported('cpu')
        True
    """
    return core.is_bfloat16_supported(place_of(available("is_bfloat16_supported", device)))
