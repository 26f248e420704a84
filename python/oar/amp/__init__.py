"""Automatic mixed precision."""

from __future__ import annotations

from typing import Any

from oar._places import place_of
from oar.amp import accuracy_compare, amp_lists, debugging, grad_scaler
from oar.amp.amp_lists import black_list, white_list
from oar.amp.auto_cast import (  # noqa: F401  (autocast, as in Paddle)
    amp_guard, auto_cast, autocast, get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype, is_autocast_enabled)
from oar.amp.decoration import amp_decorate, decorate
from oar.amp.grad_scaler import AmpScaler, GradScaler, OptimizerState  # noqa: F401  (as in Paddle)
from oar.device._plugged import available
from oar.framework import core

__all__ = [
    "AmpScaler", "GradScaler", "accuracy_compare", "amp_decorate", "amp_guard", "amp_lists", "auto_cast", "black_list",
    "debugging", "decorate", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "grad_scaler",
    "is_autocast_enabled", "is_bfloat16_supported", "is_float16_supported", "white_list",
]  # fmt: skip


def is_float16_supported(device: Any = None) -> bool:
    """Whether a device itself computes in float16. All ops take float16 on any CPU; without AVX-512-FP16 they compute in float32
    and round the results.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.

    Returns:
        a bool; False for a plug-in's device, which has the dtypes that its kernels have.

    Examples:
        >>> import oar
        >>> isinstance(oar.amp.is_float16_supported('cpu'), bool)
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
