"""GPUs, of which there are none here: ``device_count()`` is 0, and what needs one says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oar._places import unavailable
from oar.device._absent import absent_functions
from oar.device.cpu import device_count, get_rng_state, manual_seed, set_rng_state

__all__ = [
    "Event", "Stream", "current_stream", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "stream_guard", "synchronize",
    "vmm_compact",
]  # fmt: skip


class Stream:
    """A queue of kernels of a GPU. There is no GPU here, so it raises.

    Args:
        device: the device.
        priority: how urgent its kernels are.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.cuda.Stream()
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """

    def __init__(self, device: Any = None, priority: int = 2) -> None:
        raise unavailable("Stream", "GPU")


class Event:
    """A place in a stream of a GPU. There is no GPU here, so it raises.

    Args:
        enable_timing: whether it notes the time.
        blocking: whether waiting for it lets the processor sleep.
        interprocess: whether other processes can wait for it.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.cuda.Event()
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        raise unavailable("Event", "GPU")


@contextlib.contextmanager
def stream_guard(stream: Stream | None) -> Iterator[None]:
    """Kernels of the block join a stream.

    Args:
        stream: the stream; None changes nothing.

    Examples:
        >>> import oar
        >>> with oar.device.cuda.stream_guard(None):
        ...     y = oar.ones([2]) + 1
        ...
    """
    if stream is not None:
        raise unavailable("stream_guard", "GPU")
    yield


def empty_cache() -> None:
    """Returns memory of GPUs to the system: there is none to return.

    Examples:
        >>> import oar
        >>> oar.device.cuda.empty_cache()
    """


(
    current_stream, get_device_capability, get_device_name, get_device_properties, max_memory_allocated,
    max_memory_reserved, memory_allocated, memory_reserved, memory_summary, reset_max_memory_allocated,
    reset_max_memory_reserved, synchronize, vmm_compact,
) = absent_functions("oar.device.cuda", "GPU", """
     current_stream get_device_capability get_device_name get_device_properties max_memory_allocated
     max_memory_reserved memory_allocated memory_reserved memory_summary reset_max_memory_allocated
     reset_max_memory_reserved synchronize vmm_compact
""".split())  # fmt: skip
