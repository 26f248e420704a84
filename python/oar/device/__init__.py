"""The devices there are, the one of new tensors, their memory, streams and random numbers."""

from __future__ import annotations

import platform
import sys
import types
from typing import TYPE_CHECKING, Any, Literal

from oar import _C
from oar._lazy import LazyNames
from oar._places import (
    DeviceUnavailable, IPUPlace, XPUPlace, device_name, get_device, place_of, is_compiled_with_cinn, is_compiled_with_cuda, is_compiled_with_rocm,
    is_compiled_with_xpu, set_device, unavailable)
from oar._typed import (
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
    ShortTensor)
from oar.device import cpu, streams
from oar.device._plugged import available
from oar.device.cpu import (
    device_count, empty_cache, get_rng_state, manual_seed, max_memory_allocated, max_memory_reserved, memory_allocated,
    memory_reserved, reset_max_memory_allocated, reset_max_memory_reserved, set_rng_state)
from oar.device.streams import (
    Event, Stream, StreamContext, current_stream, get_stream_from_external, is_current_stream_capturing, set_stream,
    stream_guard, synchronize)
from oar.framework.core import (
    get_all_custom_device_type, get_all_device_type, get_available_custom_device, get_available_device)

if TYPE_CHECKING:
    from oar._tensor_forms import Device

_lazy_names = LazyNames("oar.device", ("cuda", "custom_device", "default_backend", "gpgpu_backend", "xpu"), {})

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor",
    "IPUPlace", "IntTensor", "LongTensor", "ShortTensor", "Stream", "StreamContext", "XPUPlace", "current_stream",
    "device", "device_count", "device_guard", "empty_cache", "get_all_custom_device_type", "get_all_device_type",
    "get_available_custom_device", "get_available_device", "get_cudnn_version", "get_default_device", "get_device",
    "get_device_capability", "get_device_module", "get_device_name", "get_device_properties", "get_rng_state",
    "get_stream_from_external", "ipc_collect", "is_available", "is_bf16_supported", "is_compiled_with_cinn", "is_compiled_with_cuda",
    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "is_current_stream_capturing", "manual_seed", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "reset_peak_memory_stats", "set_default_device", "set_device", "set_rng_state", "set_stream",
    "stream_guard", "synchronize",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


reset_peak_memory_stats = reset_max_memory_allocated


class device:  # noqa: N801
    """New tensors of the block are on another device. A context manager.

    Args:
        device: the device, for example ``'cpu'``; None changes nothing.

    Examples:
        >>> import oar
        >>> with oar.device.device('cpu'):
        ...     print(oar.zeros([1]).place)
        ...
        Place(cpu)
    """

    def __init__(self, device: Any = None) -> None:
        self._name = None if device is None else device_name(device)

    def __enter__(self) -> None:
        self._before = _C.get_device()
        if self._name is not None:
            set_device(self._name)

    def __exit__(self, *exc: object) -> Literal[False]:
        set_device(self._before)
        return False


class device_guard(device):  # noqa: N801
    """``device`` for one that is always given.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> with oar.device.device_guard('cpu'):
        ...     print(oar.zeros([1]).place)
        ...
        Place(cpu)
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device)


def get_default_device() -> Device:
    """The device of new tensors, as PyTorch's users write it.

    Returns:
        a string with the attributes ``type`` and ``index``.

    Examples:
        >>> import oar
        >>> oar.get_default_device().type
        'cpu'
    """
    from oar._tensor_forms import Device

    return Device(get_device())


def set_default_device(device: Any) -> None:
    """Chooses the device of new tensors, as ``set_device`` does.

    Args:
        device: the device, for example ``'cpu'``.

    Examples:
        >>> import oar
        >>> oar.set_default_device('cpu')
        >>> oar.get_device()
        'cpu'
    """
    set_device(device)


def get_device_module(device: Any = None) -> types.ModuleType:
    """The module with the functions for a kind of device: its memory, streams and random numbers.

    Args:
        device: the device, for example ``'cpu'`` or ``'gpu:0'``; None is the current one.

    Returns:
        ``oar.device.cpu``, ``oar.cuda``, ``oar.device.xpu``, or ``oar.device.custom_device`` for a plug-in's device.

    Examples:
        >>> import oar
        >>> oar.get_device_module('cpu').__name__
        'oar.device.cpu'
    """
    name = _C.get_device() if device is None else device_name(device)
    kind = name.lower().partition(":")[0]
    if kind in ("gpu", "cuda"):
        import oar.cuda

        return oar.cuda
    if kind == "cpu":
        return cpu
    if kind == "xpu" or kind in get_all_custom_device_type():
        return _lazy_names.load("xpu" if kind == "xpu" else "custom_device")
    known = ", ".join(repr(k) for k in ["cpu", "gpu", "xpu", *get_all_custom_device_type()])
    raise DeviceUnavailable(f"[get_device_module] there is no kind of device {kind!r}. The kinds are {known}.")


def get_device_properties(device: Any = None) -> types.SimpleNamespace:
    """What is known of a device: ``name``, ``total_memory`` in bytes and ``multi_processor_count``.

    Args:
        device: the device; None is the current one.

    Returns:
        an object with these attributes. Of a plug-in's device only the name is known.

    Examples:
        >>> import oar
        >>> oar.device.get_device_properties('cpu').multi_processor_count > 0
        True
    """
    import os

    name = available("get_device_properties", device)
    if name != "cpu":
        return types.SimpleNamespace(name=name)
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return types.SimpleNamespace(name=get_device_name(name), total_memory=pages * size,
                                 multi_processor_count=os.cpu_count() or 1)


def get_device_name(device: Any = None) -> str:
    """The name of a device: of the CPU, that of its architecture.

    Args:
        device: the device; None is the current one.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> len(oar.device.get_device_name('cpu')) > 0
        True
    """
    name = available("get_device_name", device)
    return platform.machine() if name == "cpu" else name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The version of what a GPU can do. There is no GPU here, so it raises.

    Args:
        device: the device.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.get_device_capability()
        ... except ValueError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("get_device_capability", "GPU")


def is_available() -> bool:
    """Whether there is a GPU: no.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_available()
        False
    """
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a GPU computes in bfloat16: there is none. On the CPU all ops take bfloat16.

    Args:
        including_emulation: whether it counts if it is not faster than float32.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_bf16_supported()
        False
    """
    return False


def ipc_collect() -> None:
    """Frees memory of a GPU that other processes no longer use. There is no GPU here, so it raises.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.ipc_collect()
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("ipc_collect", "GPU")


def is_compiled_with_ipu() -> bool:
    """False: devices other than the CPU come as plug-ins.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_ipu()
        False
    """
    return False


def is_compiled_with_distribute() -> bool:
    """False: there is one process.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_distribute()
        False
    """
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether a plug-in provides devices of that kind.

    Args:
        device_type: the kind of device.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_compiled_with_custom_device('npu')
        False
    """
    return device_type in get_all_custom_device_type()


def _convert_to_place(device: str) -> Any:
    """The place of a device that is given by its name, after ``set_device`` would take it."""
    if device != "cpu" and device not in get_available_custom_device() + get_all_custom_device_type():
        raise unavailable("device", device)
    return place_of(device)


def get_cudnn_version() -> None:
    """None: cuDNN is not used.

    Examples:
        >>> import oar
        >>> oar.device.get_cudnn_version() is None
        True
    """
    return None


class _DeviceModule(types.ModuleType):
    """The module, which can be called for a device by name, as in PyTorch: ``oar.device('cpu')``."""

    def __call__(self, device: Any, index: int | None = None) -> Any:
        from oar._tensor_forms import Device

        return Device(str(device) if index is None else f"{device}:{index}")


sys.modules[__name__].__class__ = _DeviceModule
