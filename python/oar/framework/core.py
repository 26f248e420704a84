"""Questions about the build and its dtypes, under the names of Paddle's native module."""

from __future__ import annotations

import types

from oar import _C
from oar._C import Tensor
from oar._places import (
    CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, IPUPlace, XPUPinnedPlace, XPUPlace, is_compiled_with_cinn,
    is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu, unavailable)

__all__ = [
    "CPUPlace",
    "CustomPlace",
    "IPUPlace",
    "LoDTensor",
    "Place",
    "Scope",
    "XPUPinnedPlace",
    "XPUPlace",
    "XPUVersion",
    "get_all_op_protos",
    "get_low_precision_op_list",
    "get_op_extra_attrs",
    "get_xpu_device_version",
    "globals",
    "is_compiled_with_avx",
    "is_compiled_with_mkldnn",
    "set_prim_eager_enabled",
    "supports_avx512f",
    "supports_bfloat16",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "DataType",
    "VarDesc",
    "eager",
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_custom_device",
    "get_available_device",
    "get_cuda_device_count",
    "is_bfloat16_supported",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "is_float16_supported",
]


class DataType:
    """The dtypes by their names in programs."""

    BOOL = _C.bool
    UINT8 = _C.uint8
    UINT32 = _C.uint32
    UINT64 = _C.uint64
    PSTRING = _C.pstring
    UNDEFINED = _C.raw
    INT8 = _C.int8
    INT16 = _C.int16
    INT32 = _C.int32
    INT64 = _C.int64
    FLOAT16 = _C.float16
    BFLOAT16 = _C.bfloat16
    FLOAT32 = _C.float32
    FLOAT64 = _C.float64
    FLOAT8_E4M3FN = _C.float8_e4m3fn
    FLOAT8_E5M2 = _C.float8_e5m2
    COMPLEX64 = _C.complex64
    COMPLEX128 = _C.complex128


class VarDesc:
    """Holds ``VarType``."""

    class VarType:
        """The dtypes by their older names, and the kinds of variables."""

        LOD_TENSOR = DENSE_TENSOR = "dense tensor"
        SELECTED_ROWS = "selected rows"
        LOD_TENSOR_ARRAY = DENSE_TENSOR_ARRAY = "list of tensors"

        BOOL = _C.bool
        UINT8 = _C.uint8
        UINT32 = _C.uint32
        UINT64 = _C.uint64
        RAW = _C.raw
        INT8 = _C.int8
        INT16 = _C.int16
        INT32 = _C.int32
        INT64 = _C.int64
        FP16 = _C.float16
        BF16 = _C.bfloat16
        FP32 = _C.float32
        FP64 = _C.float64
        FP8_E4M3FN = _C.float8_e4m3fn
        FP8_E5M2 = _C.float8_e5m2
        COMPLEX64 = _C.complex64
        COMPLEX128 = _C.complex128


eager = types.SimpleNamespace(Tensor=Tensor)


def get_cuda_device_count() -> int:
    """0: devices other than the CPU come as plug-ins."""
    return 0


def _devices() -> dict[str, int]:
    """How many devices of each kind there are, without the one that only measures overhead."""
    return {kind: number for kind, number in _C.device_types() if kind != "null"}


def get_all_device_type() -> list[str]:
    """The available kinds of devices: the CPU and those of plug-ins.

    Examples:
        >>> import oar
        >>> 'cpu' in oar.device.get_all_device_type()
        True
    """
    return list(_devices())


def get_all_custom_device_type() -> list[str]:
    """The kinds of devices of loaded plug-ins.

    Examples:
        >>> import oar
        >>> isinstance(oar.device.get_all_custom_device_type(), list)
        True
    """
    return [kind for kind in _devices() if kind != "cpu"]


def get_available_device() -> list[str]:
    """The available devices, by the names that ``set_device`` takes.

    Examples:
        >>> import oar
        >>> 'cpu' in oar.device.get_available_device()
        True
    """
    return ["cpu", *get_available_custom_device()]


def get_available_custom_device() -> list[str]:
    """The devices of loaded plug-ins, by the names that ``set_device`` takes.

    Examples:
        >>> import oar
        >>> isinstance(oar.device.get_available_custom_device(), list)
        True
    """
    return [f"{kind}:{i}" for kind in get_all_custom_device_type() for i in range(_devices()[kind])]


def is_bfloat16_supported(place=None) -> bool:
    """Whether ops take bfloat16: on the CPU, all of them."""
    return place is None or place.is_cpu_place()


def is_float16_supported(place=None) -> bool:
    """Whether ops take float16: on the CPU, all of them."""
    return place is None or place.is_cpu_place()


# kinds of places -----------------------------------------------------------------------------------


class XPUVersion:
    """The generations of Kunlun devices."""

    XPU1 = 1
    XPU2 = 2
    XPU3 = 3


def get_xpu_device_version(device_id: int = 0) -> int:
    """An error: there is no such device."""
    raise unavailable("get_xpu_device_version", "XPU")


class Place:
    """A place of any kind, which is set later."""

    def __init__(self) -> None:
        self._place: object = CPUPlace()

    def set_place(self, place: object) -> None:
        """Become that place."""
        self._place = place

    def __getattr__(self, name: str):
        return getattr(self.__dict__["_place"], name)


# what the processor and the build can do ---------------------------------------------------------


def _processor_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo") as file:
            return next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return set()


def supports_avx512f() -> bool:
    """Whether the processor has AVX-512."""
    return "avx512f" in _processor_flags()


def supports_bfloat16() -> bool:
    """Whether bfloat16 is fast: with AVX-512."""
    return supports_avx512f()


def is_compiled_with_avx() -> bool:
    """True: AVX2 is the least that Oar needs."""
    return True


def is_compiled_with_mkldnn() -> bool:
    """True: large products and convolutions are oneDNN's."""
    return True


# flags and wishes ----------------------------------------------------------------------------------


class _Globals:
    """The flags as a mapping."""

    def __getitem__(self, name: str):
        from oar._framework import get_flags

        return get_flags(name)[name]

    def __setitem__(self, name: str, value: object) -> None:
        from oar._framework import set_flags

        set_flags({name: value})

    def __contains__(self, name: str) -> bool:
        return name.removeprefix("FLAGS_") in self.keys()

    def keys(self) -> list[str]:
        """The names of the flags."""
        from oar._framework import _kept_flags

        return [row[0] for row in _C.list_flags()] + list(_kept_flags())

    def is_public(self, name: str) -> bool:
        """Whether there is such a flag."""
        return name in self


def globals() -> _Globals:
    """The flags as a mapping."""
    return _Globals()


_expansion = {"forward": False, "backward": False, "eager": False}


def _set_prim_all_enabled(value: bool) -> None:
    """Whether ops should be expanded into primitives. Stored; the results are the same, and Oar expands what a device lacks."""
    _expansion.update(forward=bool(value), backward=bool(value))


def _set_prim_forward_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for forward calls."""
    _expansion["forward"] = bool(value)


def _set_prim_backward_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for gradients."""
    _expansion["backward"] = bool(value)


def set_prim_eager_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for calls that run at once."""
    _expansion["eager"] = bool(value)


def _is_fwd_prim_enabled() -> bool:
    return _expansion["forward"]


def _is_bwd_prim_enabled() -> bool:
    return _expansion["backward"]


def _is_eager_prim_enabled() -> bool:
    return _expansion["eager"]


_kept_whole: dict[str, set[str]] = {"forward": set(), "backward": set()}


def _set_prim_forward_blacklist(*names: str) -> None:
    """Ops that are not to be expanded. Kept, as the wish to expand is."""
    _kept_whole["forward"].update(names)


def _set_prim_backward_blacklist(*names: str) -> None:
    """Ops whose gradients are not to be expanded. Kept, as the wish to expand is."""
    _kept_whole["backward"].update(names)


def get_all_op_protos() -> list[bytes]:
    """The ops that ``Block.append_op`` takes, as bytes that ``OpProto.FromString`` reads."""
    from oar.base import operators
    from oar.base.proto.framework_pb2 import OpProto

    forms = map(operators.find_older, operators.older_names())
    return [OpProto.of(form).SerializeToString() for form in forms if form is not None]


def get_op_extra_attrs(type: str) -> dict[str, object]:
    """Attributes that only steer another engine: none are listed."""
    return {}


def get_low_precision_op_list() -> dict[str, str]:
    """How often ops ran in which precision. Empty: calls are counted by ``oar.profiler`` only."""
    return {}


def __getattr__(name: str):
    if name in ("LoDTensor", "Scope"):
        from oar.static import scope

        return getattr(scope, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
