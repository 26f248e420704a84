"""Kunlun devices, of which there are none here: ``device_count()`` is 0, and what needs one says so."""

from __future__ import annotations

from typing import Any

from oar._places import unavailable
from oar.device._absent import absent_functions
from oar.device.cpu import device_count, get_rng_state, manual_seed, set_rng_state

__all__ = [
    "Event", "Stream", "device_count", "empty_cache", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_total", "memory_used", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "set_debug_level", "synchronize",
]  # fmt: skip


class Stream:
    """A queue of kernels of an XPU. There is no XPU here, so it raises.

    Args:
        device: the device.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.xpu.Stream()
        ... except RuntimeError as error:
        ...     print("there is no XPU here" in str(error))
        ...
        True
    """

    def __init__(self, device: Any = None) -> None:
        raise unavailable("Stream", "XPU")


class Event:
    """A place in a stream of an XPU. There is no XPU here, so it raises.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.xpu.Event()
        ... except RuntimeError as error:
        ...     print("there is no XPU here" in str(error))
        ...
        True
    """

    def __init__(self) -> None:
        raise unavailable("Event", "XPU")


def empty_cache() -> None:
    """Returns memory of an XPU to the system. There is no XPU here, so it raises.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.xpu.empty_cache()
        ... except ValueError as error:
        ...     print("there is no XPU here" in str(error))
        ...
        True
    """
    raise unavailable("empty_cache", "XPU")


def set_debug_level(level: int = 0) -> None:
    """How much the library of an XPU tells. There is no XPU here, so it raises.

    Args:
        level: the level.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.xpu.set_debug_level(1)
        ... except ValueError as error:
        ...     print("there is no XPU here" in str(error))
        ...
        True
    """
    raise unavailable("set_debug_level", "XPU")


(
    max_memory_allocated, max_memory_reserved, memory_allocated, memory_reserved, memory_total, memory_used,
    reset_max_memory_allocated, reset_max_memory_reserved, synchronize,
) = absent_functions("oar.device.xpu", "XPU", """
     max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_total memory_used
     reset_max_memory_allocated reset_max_memory_reserved synchronize
""".split())  # fmt: skip
