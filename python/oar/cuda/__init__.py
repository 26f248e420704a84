"""GPUs under the names of PyTorch: there are none here, and what needs one says so."""

from __future__ import annotations

from typing import Any

from oar._places import device_name, unavailable
from oar._typed import (
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
    ShortTensor)
from oar.device import (
    StreamContext, device, get_rng_state, get_stream_from_external, ipc_collect, is_available, is_bf16_supported,
    is_current_stream_capturing, manual_seed, set_rng_state)
from oar.device import set_device as _set_device
from oar.device._absent import absent
from oar.device.cuda import (
    Event, Stream, current_stream, device_count, empty_cache, get_device_capability, get_device_name,
    get_device_properties, max_memory_allocated, max_memory_reserved, memory_allocated, memory_reserved,
    reset_max_memory_allocated, reset_max_memory_reserved, synchronize)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "Stream", "StreamContext", "check_error", "cudart", "current_device",
    "current_stream", "device", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "get_rng_state", "get_stream_from_external", "ipc_collect", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "mem_get_info",
    "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device", "set_rng_state", "set_stream",
    "stream", "synchronize",
]  # fmt: skip

manual_seed_all = manual_seed
reset_peak_memory_stats = reset_max_memory_allocated
mem_get_info = absent("oar.cuda", "mem_get_info", "GPU", "The free and the total bytes of a GPU.")


def is_initialized() -> bool:
    """Whether a GPU is in use: no.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.cuda.is_initialized()
        False
    """
    return False


def current_device() -> int:
    """0, the number of a first GPU, if there were one.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.cuda.current_device()
        0
    """
    return 0


def set_device(device: Any) -> None:
    """Chooses the device of new tensors. A number is a GPU's, and an error.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> oar.cuda.set_device('cpu')
    """
    _set_device(device_name(device))


def set_stream(stream: Stream) -> Stream:
    """Makes a stream of a GPU the one that new kernels join. There is no GPU here, so it raises.

    Args:
        stream: the stream.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.cuda.set_stream(None)
        ... except ValueError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("set_stream", "GPU")


def stream(stream: Any) -> StreamContext:
    """``StreamContext`` as a function.

    Args:
        stream: the stream; None changes nothing.

    Returns:
        a context manager.

    Examples:
        >>> import oar
        >>> with oar.cuda.stream(None):
        ...     y = oar.ones([2]) + 1
        ...
    """
    return StreamContext(stream)


def cudart() -> Any:
    """The library of a GPU. There is no GPU here, so it raises.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.cuda.cudart()
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("cudart", "GPU")


def check_error(res: int) -> None:
    """Raises if a call of ``cudart`` failed. There is no GPU here, so it always raises.

    Args:
        res: what the call returned.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.cuda.check_error(0)
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("check_error", "GPU")
