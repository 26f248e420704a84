"""Paddle's binary form of a single tensor: what ``save(use_binary_format=True)`` writes, and ``load`` reads.

``u32 0 | u64 0 (levels of sequences) | tensor``, where a tensor is ``u32 0 | i32 size | description | elements``. The
description is a protocol buffer of two fields: the number of the dtype, and the sizes. Selected rows are ``u32 0 | u64 count |
rows | i64 height | tensor``. All little-endian.
"""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

from oar._lazy import np

__all__ = ["looks_binary", "read_binary", "write_binary"]

# Paddle's number of a dtype. float8 and bfloat16 travel as their bits.
_NUMBERS = {
    "bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21,
    "bfloat16": 22, "complex64": 23, "complex128": 24, "float8_e4m3fn": 32, "float8_e5m2": 33,
}  # fmt: skip
_NAMES = {number: name for name, number in _NUMBERS.items()}
_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_MOST_AXES = 64
_LARGEST_ROWS = 1 << 30


class _Damaged(ValueError):
    """The bytes are not a tensor."""


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def write_binary(file: BinaryIO, array: np.ndarray, dtype: str) -> None:
    """Writes a tensor.

    Args:
        file: a file that is open for writing.
        array: the elements.
        dtype: the name of their dtype.
    """
    if dtype not in _NUMBERS:
        raise TypeError(f"[save] use_binary_format=True has no number for dtype {dtype}. Cast the tensor, or save it to a path "
                        "that ends in .safetensors.")
    description = b"\x08" + _varint(_NUMBERS[dtype]) + b"".join(b"\x10" + _varint(size) for size in array.shape)
    file.write(struct.pack("<IQIi", 0, 0, 0, len(description)))
    file.write(description)
    carried = array.astype(np.dtype(_CARRIERS.get(dtype, dtype)).newbyteorder("<"), copy=False)
    file.write(np.ascontiguousarray(carried).reshape(-1).view(np.uint8).data)


def looks_binary(start: bytes) -> bool:
    """Whether a file that begins like this may be a tensor in this form. A pickle begins in another way."""
    return len(start) >= 16 and start[:4] == bytes(4)


class _Bytes:
    """Bytes that are read in order."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, count: int) -> memoryview:
        if not 0 <= count <= len(self._data) - self._at:
            raise _Damaged(f"{count} bytes should follow byte {self._at}, but {len(self._data) - self._at} do")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, layout: str) -> int:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _Damaged("a number has too many bytes")

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def _read_tensor(data: _Bytes) -> tuple[np.ndarray, str]:
    if data.number("<I") != 0:
        raise _Damaged("the tensor's version is unknown")
    description = _Bytes(bytes(data.take(data.number("<i"))))
    dtype, shape = "", []
    while description.left:
        field = description.varint()
        if field == 0x12:  # the sizes in one piece
            sizes = _Bytes(bytes(description.take(description.varint())))
            while sizes.left:
                shape.append(sizes.varint())
        elif field == 0x08:
            dtype = _NAMES.get(description.varint(), "")
        elif field == 0x10:
            shape.append(description.varint())
        else:
            raise _Damaged(f"field {field} of the description is unknown")
    if not dtype or len(shape) > _MOST_AXES or any(size >= 1 << 63 for size in shape):
        raise _Damaged(f"dtype or shape {shape} is none")
    carrier = np.dtype(_CARRIERS.get(dtype, dtype)).newbyteorder("<")
    elements = data.take(math.prod(shape) * carrier.itemsize)
    return np.frombuffer(elements, carrier).reshape(shape).copy(), dtype


def _read_whole(data: _Bytes) -> tuple[np.ndarray, str]:
    data.number("<I")
    for _ in range(data.number("<Q")):  # where sequences begin, level by level
        data.take(data.number("<Q"))
    found = _read_tensor(data)
    if data.left:
        raise _Damaged(f"{data.left} bytes are left over")
    return found


def _read_rows(data: _Bytes) -> tuple[np.ndarray, str]:
    """Selected rows, as the whole tensor."""
    data.number("<I")
    rows = np.frombuffer(data.take(8 * data.number("<Q")), "<i8")
    height = data.number("<q")
    values, dtype = _read_tensor(data)
    if data.left or values.ndim == 0 or len(rows) != len(values) or (rows.size and not 0 <= rows.min() <= rows.max() < height):
        raise _Damaged("the rows do not fit their values")
    if height * values[:1].nbytes > max(_LARGEST_ROWS, 1000 * values.nbytes):
        raise _Damaged(f"{height} rows would take more memory than {len(values)} of them make likely")
    whole = np.zeros((height, *values.shape[1:]), values.dtype)
    if dtype in _CARRIERS:
        whole[rows] = values
    else:
        np.add.at(whole, rows, values)
    return whole, dtype


def read_binary(data: bytes, what: str) -> tuple[np.ndarray, str]:
    """The elements of a tensor and the name of their dtype.

    Args:
        data: the content of a file.
        what: what an error calls it.
    """
    try:
        return _read_whole(_Bytes(data))
    except (_Damaged, struct.error) as error:
        problem = error
    try:
        return _read_rows(_Bytes(data))
    except (_Damaged, struct.error, MemoryError):
        raise ValueError(f"[load] {what} begins like a tensor that save(use_binary_format=True) wrote, but {problem}. The file is "
                         "damaged or cut off; copy or download it again.") from None
