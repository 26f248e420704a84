"""Questions about the build and its dtypes, under the names of Paddle's native module."""

from __future__ import annotations

import types

from oar import _C
from oar._C import Tensor
from oar._framework import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
)

__all__ = [
    "CPUPlace",
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
    INT8 = _C.int8
    INT16 = _C.int16
    INT32 = _C.int32
    INT64 = _C.int64
    FLOAT16 = _C.float16
    BFLOAT16 = _C.bfloat16
    FLOAT32 = _C.float32
    FLOAT64 = _C.float64
    COMPLEX64 = _C.complex64
    COMPLEX128 = _C.complex128


class VarDesc:
    """Holds ``VarType``."""

    class VarType:
        """The dtypes by their older names."""

        BOOL = _C.bool
        UINT8 = _C.uint8
        INT8 = _C.int8
        INT16 = _C.int16
        INT32 = _C.int32
        INT64 = _C.int64
        FP16 = _C.float16
        BF16 = _C.bfloat16
        FP32 = _C.float32
        FP64 = _C.float64
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
    """The kinds of devices there are: the CPU and those of plug-ins."""
    return list(_devices())


def get_all_custom_device_type() -> list[str]:
    """The kinds of devices that plug-ins brought."""
    return [kind for kind in _devices() if kind != "cpu"]


def get_available_device() -> list[str]:
    """The devices there are, by the names that ``set_device`` takes."""
    return ["cpu", *get_available_custom_device()]


def get_available_custom_device() -> list[str]:
    """The devices that plug-ins brought, by the names that ``set_device`` takes."""
    return [f"{kind}:{i}" for kind in get_all_custom_device_type() for i in range(_devices()[kind])]


def is_bfloat16_supported(place=None) -> bool:
    """Whether ops take bfloat16: on the CPU, all of them."""
    return place is None or place.is_cpu_place()


def is_float16_supported(place=None) -> bool:
    """Whether ops take float16: on the CPU, all of them."""
    return place is None or place.is_cpu_place()
