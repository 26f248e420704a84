"""Functions of devices that are not there: each says so when it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oar._places import unavailable

__all__ = ["absent", "absent_functions"]


def absent(home: str, name: str, kind: str, brief: str) -> Callable[..., Any]:
    """A function of a device of that kind, which raises, since there is none.

    Args:
        home: the module of the function, such as ``oar.device.cuda``.
        name: its name.
        kind: the kind of device.
        brief: what it would do.
    """

    def function(device: Any = None) -> Any:
        raise unavailable(name, kind)

    function.__name__ = function.__qualname__ = name
    function.__module__ = home
    function.__doc__ = f"""{brief} There is no {kind} here, so it raises.

    Args:
        device: the device.

    Examples:
        >>> import oar
        >>> try:
        ...     {home}.{name}()
        ... except ValueError as error:
        ...     print("there is no {kind} here" in str(error))
        ...
        True
    """
    return function


_BRIEFS = {
    "current_stream": "The queue of kernels that new ones join.",
    "get_device_capability": "The major and minor version of what the device can do.",
    "get_device_name": "The name of the device.",
    "get_device_properties": "Name, memory and number of processors of the device.",
    "max_memory_allocated": "The most bytes that tensors took at once.",
    "max_memory_reserved": "The most bytes that the allocator held at once.",
    "mem_get_info": "The free and the total bytes of the device.",
    "memory_allocated": "The bytes that tensors take.",
    "memory_reserved": "The bytes that the allocator holds.",
    "memory_summary": "The use of memory as a table.",
    "memory_total": "The bytes of the device.",
    "memory_used": "The bytes in use.",
    "reset_max_memory_allocated": "Starts to look for the maximum of ``memory_allocated`` anew.",
    "reset_max_memory_reserved": "Starts to look for the maximum of ``memory_reserved`` anew.",
    "synchronize": "Waits for the kernels of the device.",
    "vmm_compact": "Moves memory that is in use together.",
}


def absent_functions(home: str, kind: str, names: Sequence[str]) -> list[Callable[..., Any]]:
    """Several of them."""
    return [absent(home, name, kind, _BRIEFS[name]) for name in names]
