"""``TensorProto``: the tensors in event files."""

from __future__ import annotations

import math
from typing import Any

from oar import _protobuf as pb
from oar._lazy import np

__all__ = ["float_tensor", "read_tensor", "string_tensor"]

_FLOAT, _STRING = 1, 7
# TensorFlow's numbers of dtypes.
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2", 19: "<f2", 22: "<u4", 23: "<u8"}
_MOST_ELEMENTS = 1 << 27


def _shape(sizes: tuple[int, ...]) -> bytes:
    return pb.field(2, b"".join(pb.field(2, pb.field(1, size)) for size in sizes))


def float_tensor(array: Any) -> bytes:
    """A tensor of float32."""
    array = np.ascontiguousarray(array, "<f4")
    return pb.field(1, _FLOAT) + _shape(array.shape) + pb.field(4, array.tobytes())


def string_tensor(*values: str | bytes) -> bytes:
    """A tensor of strings with one axis."""
    return pb.field(1, _STRING) + _shape((len(values),)) + b"".join(pb.field(8, value) for value in values)


def _read_shape(data: memoryview) -> list[int]:
    sizes = []
    for number, value in pb.fields(data):
        if number == 2:
            sizes.append(next((pb.signed(part) for inner, part in pb.fields(value) if inner == 1), 0))
    if any(size < 0 for size in sizes) or math.prod(sizes) > _MOST_ELEMENTS:
        raise ValueError(f"a tensor has the shape {sizes}")
    return sizes


def read_tensor(data: memoryview) -> Any:
    """A tensor as an array; one of strings as a list of bytes."""
    dtype, shape, content = 0, None, None  # type: int, list[int] | None, memoryview | None
    strings: list[bytes] = []
    numbers: list[float] = []
    for number, value in pb.fields(data):
        if number == 1:
            dtype = value
        elif number == 2:
            shape = _read_shape(value)
        elif number == 4:
            content = value
        elif number == 8:
            strings.append(bytes(value))
        elif number == 5:
            numbers += pb.floats(value)
        elif number == 6:
            numbers += pb.doubles(value)
        elif number in (7, 10, 11, 16, 17):
            numbers += pb.integers(value)
    if dtype == _STRING:
        return strings
    if dtype not in _DTYPES:
        raise ValueError(f"a tensor has the dtype number {dtype}, which is not supported")
    shape = shape or []
    if content is not None and len(content):
        array = np.frombuffer(content, _DTYPES[dtype])
    else:
        array = np.asarray(numbers, _DTYPES[dtype])
        if array.size == 1:  # one number stands for all
            array = np.broadcast_to(array, (math.prod(shape),))
    if array.size != math.prod(shape):
        raise ValueError(f"a tensor of shape {shape} has {array.size} elements")
    return array.reshape(shape)
