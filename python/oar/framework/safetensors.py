"""The safetensors format: named arrays in a file that holds nothing else.

``u64 header_size | header (JSON) | data``, little-endian. The header maps a name to its ``dtype``, ``shape`` and
``data_offsets`` within the data; ``__metadata__`` maps strings to strings. Arrays are contiguous, in C order,
without gaps or overlaps.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from oar import _C
from oar._lazy import np

__all__ = ["SafetensorsError", "arrays_in", "load_arrays", "looks_like_safetensors", "name_in_files", "raw_bytes",
           "save_arrays"]

# Names in the file, and the NumPy dtype that carries each. bfloat16 travels as uint16.
_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16",
    "F8_E4M3": "u1", "F8_E5M2": "u1", "I4": "u1", "U4": "u1", "F4": "u1",
}  # fmt: skip
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "complex128": "C128", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "int4": "I4", "uint4": "U4", "float4_e2m1fn": "F4",
}  # fmt: skip
# Two elements to a byte, the first in its low half. Arrays have one per byte, in their low halves.
_PACKED = {"I4", "U4", "F4"}
_OAR_NAMES = {name: oar_name for oar_name, name in _NAMES.items()}


class SafetensorsError(ValueError):
    """A file that is not what it should be."""


def _packed(array: np.ndarray) -> np.ndarray:
    halves = np.zeros(-(-array.size // 2) * 2, np.uint8)
    halves[: array.size] = array.ravel() & 15
    return halves[0::2] | halves[1::2] << 4


def _unpacked(data: np.ndarray, shape: list[int]) -> np.ndarray:
    return np.stack([data & 15, data >> 4], axis=-1).ravel()[: math.prod(shape)].reshape(shape)


def _nbytes(dtype: str, shape: list[int]) -> int:
    if dtype in _PACKED:
        return -(-math.prod(shape) // 2)
    return math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize


def save_arrays(
    file: BinaryIO, arrays: Mapping[str, tuple[np.ndarray, str]], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays, each with the name of its dtype (an array of uint16 may hold bfloat16)."""
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    # The widest elements first, so that every array is aligned to its elements.
    order = sorted(arrays, key=lambda name: (-arrays[name][0].dtype.itemsize, name))
    end = 0
    for name in order:
        array, dtype = arrays[name]
        if dtype not in _NAMES:
            raise SafetensorsError(f"Tensor '{name}' has dtype {dtype}, which safetensors cannot hold.")
        nbytes = _nbytes(_NAMES[dtype], list(array.shape))
        header[name] = {"dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": [end, end + nbytes]}
        end += nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        file.write(raw_bytes(*arrays[name]))


def name_in_files(dtype: str) -> str | None:
    """The dtype as the format calls it; None if it has no such dtype."""
    return _NAMES.get(dtype)


def raw_bytes(array: np.ndarray, dtype: str) -> Any:
    """The bytes of an array as files hold them, without a copy where that is possible."""
    if _NAMES[dtype] in _PACKED:
        array = _packed(array)
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return little.data.cast("B") if little.size else b""


def load_arrays(path: str | os.PathLike) -> tuple[dict[str, tuple[np.ndarray, str]], dict[str, str]]:
    """Read a file: arrays with the names of their dtypes, and the metadata.

    The arrays are views of the file mapped into memory, and read-only. The file's metadata is read and
    checked by `formats/safetensors.cpp`.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0  # which cannot be mapped
        data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return arrays_in(data, path)


def looks_like_safetensors(data: bytes) -> bool:
    """A header of JSON within the bytes: no pickle begins like that."""
    return data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8


def arrays_in(data: Any, path: str) -> tuple[dict[str, tuple[np.ndarray, str]], dict[str, str]]:
    """The same of bytes; ``path`` is what errors call them."""
    try:
        entries, metadata = _C.safetensors_index(data)
    except ValueError as error:
        raise SafetensorsError(f"{path} is not a safetensors file: {error}") from None
    arrays: dict[str, tuple[np.ndarray, str]] = {}
    for name, dtype, shape, begin, _ in entries:
        kind = np.dtype(_DTYPES[dtype])
        flat = np.frombuffer(data, dtype=kind, count=_nbytes(dtype, shape) // kind.itemsize, offset=begin)
        array = _unpacked(flat, shape) if dtype in _PACKED else flat.reshape(shape)
        arrays[name] = (array, _OAR_NAMES[dtype])
    return arrays, metadata
