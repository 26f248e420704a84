"""The devices of plug-ins: how many there are, and their streams. A plug-in does not report the memory of its devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C
from oar.device import streams
from oar.device._plugged import device_of, memory_unknown
from oar.device.cpu import get_rng_state, manual_seed, set_rng_state  # noqa: F401
from oar.device.default_backend import get_device_properties
from oar.framework.core import get_all_custom_device_type

__all__ = [
    "Event", "Stream", "current_stream", "device_count", "empty_cache", "get_device_properties", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "synchronize",
]  # fmt: skip


class Stream(streams.Stream):
    """The queue of kernels of a plug-in's device.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.
        priority: how urgent its kernels are: 1 or 2.
        blocking: accepted for compatibility.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.Stream('npu:0')
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """

    def __init__(self, device: Any = None, priority: int = 2, blocking: bool = False) -> None:
        super().__init__(device_of("Stream", device), priority)


class Event(streams.Event):
    """A place in the queue of a plug-in's device, with the time at which the kernels before it were done.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.
        enable_timing: whether it notes the time.
        blocking: accepted for compatibility.
        interprocess: accepted for compatibility.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.Event('npu:0')
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        super().__init__(device_of("Event", device), enable_timing, blocking, interprocess)


def device_count(device_type: str | None = None) -> int:
    """The number of devices of a plug-in.

    Args:
        device_type: the kind of device; None is that of the first plug-in.

    Returns:
        an integer, 0 if there is no such plug-in.

    Examples:
        >>> import oar
        >>> oar.device.custom_device.device_count('npu')
        0
    """
    kinds = get_all_custom_device_type()
    wanted = device_type or next(iter(kinds), None)
    return dict(_C.device_types())[wanted] if wanted in kinds else 0


def empty_cache() -> None:
    """Returns unused memory to the system. Oar keeps none of a plug-in's device.

    Examples:
        >>> import oar
        >>> oar.device.custom_device.empty_cache()
    """


def current_stream(device: Any = None) -> streams.Stream:
    """The stream that new kernels of a plug-in's device join.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.

    Returns:
        a Stream.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.current_stream('npu:0')
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """
    return streams.current_stream(device_of("current_stream", device))


def synchronize(device: Any = None) -> None:
    """Waits for the kernels of a plug-in's device. A failure of one of them is raised here.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.synchronize('npu:0')
        ... except ValueError as error:
        ...     print("there is no npu:0 here" in str(error))
        ...
        True
    """
    streams.synchronize(device_of("synchronize", device))


def _of_memory(name: str, brief: str) -> Callable[..., Any]:
    def function(device: Any = None) -> Any:
        raise memory_unknown(name, device_of(name, device))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{brief} A plug-in does not report its memory, so it raises.

    Args:
        device: the device: a name, a number or a place; None is the current one, or the first one of a plug-in.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.custom_device.{name}()
        ... except RuntimeError as error:
        ...     print("plug-in" in str(error))
        ...
        True
    """
    return function


max_memory_allocated = _of_memory("max_memory_allocated", "The most bytes that tensors took at once.")
max_memory_reserved = _of_memory("max_memory_reserved", "The most bytes that the allocator held at once.")
memory_allocated = _of_memory("memory_allocated", "The bytes that tensors take.")
memory_reserved = _of_memory("memory_reserved", "The bytes that the allocator holds.")
reset_max_memory_allocated = _of_memory(
    "reset_max_memory_allocated", "Starts to look for the maximum of ``memory_allocated`` anew.")
reset_max_memory_reserved = _of_memory(
    "reset_max_memory_reserved", "Starts to look for the maximum of ``memory_reserved`` anew.")
