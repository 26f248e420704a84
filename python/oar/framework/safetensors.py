"""The safetensors format: named arrays in a file that holds nothing else.

``u64 header_size | header (JSON) | data``, little-endian. The header maps a name to its ``dtype``, ``shape`` and
``data_offsets`` within the data; ``__metadata__`` maps strings to strings. Arrays are contiguous, in C order,
without gaps or overlaps. Everything read from a file is checked before it is used.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from oar._lazy import np

__all__ = ["SafetensorsError", "load_arrays", "save_arrays"]

_MAX_HEADER = 100 << 20
_MAX_RANK = 64
# Names in the file, and the NumPy dtype that carries each. bfloat16 travels as uint16.
_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8", "C64": "<c8", "C128": "<c16",
    "F8_E4M3": "u1", "F8_E5M2": "u1",
}  # fmt: skip
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64", "complex128": "C128", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
}  # fmt: skip
_OAR_NAMES = {name: oar_name for oar_name, name in _NAMES.items()}


class SafetensorsError(ValueError):
    """A file that is not what it should be."""


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
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [end, end + array.nbytes],
        }
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        array = arrays[name][0]
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        file.write(memoryview(little).cast("B") if little.size else b"")


def load_arrays(path: str | os.PathLike) -> tuple[dict[str, tuple[np.ndarray, str]], dict[str, str]]:
    """Read a file: arrays with the names of their dtypes, and the metadata.

    The arrays are views of the file mapped into memory, and read-only.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise SafetensorsError(f"{path} is no safetensors file: it has {size} bytes, not even a header's size.")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header_size = int.from_bytes(data[:8], "little")
    if header_size > min(size - 8, _MAX_HEADER):
        raise SafetensorsError(f"{path}: the header claims {header_size} bytes, but the file has {size}.")
    header = _parse_header(path, data[8 : 8 + header_size])
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise SafetensorsError(f"{path}: __metadata__ is not an object.")
    start = 8 + header_size
    spans: list[tuple[int, int, str]] = []
    arrays: dict[str, tuple[np.ndarray, str]] = {}
    for name, entry in header.items():
        dtype, shape, begin, end = _check_entry(path, name, entry, size - start)
        spans.append((begin, end, name))
        kind = np.dtype(_DTYPES[dtype])
        flat = np.frombuffer(data, dtype=kind, count=math.prod(shape), offset=start + begin)
        arrays[name] = (flat.reshape(shape), _OAR_NAMES[dtype])
    _check_cover(path, spans, size - start)
    return arrays, metadata


def _parse_header(path: str, text: bytes) -> dict[str, Any]:
    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise SafetensorsError(f"{path}: the header names a key twice.")
        return result

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=refuse_repeats)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SafetensorsError(f"{path} is no safetensors file: its header is not JSON ({error}).") from None
    if not isinstance(header, dict):
        raise SafetensorsError(f"{path}: the header is not a JSON object.")
    return header


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _check_entry(path: str, name: str, entry: Any, room: int) -> tuple[str, list[int], int, int]:
    where = f"{path}: tensor '{name}'"
    if not isinstance(entry, dict):
        raise SafetensorsError(f"{where} is not described by an object.")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise SafetensorsError(f"{where} has an unknown dtype {dtype!r}.")
    if not isinstance(shape, list) or len(shape) > _MAX_RANK or not all(map(_is_count, shape)):
        raise SafetensorsError(f"{where} has a shape that is none: {str(shape)[:80]}.")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise SafetensorsError(f"{where} has offsets that are none: {str(offsets)[:80]}.")
    begin, end = offsets
    wanted = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if not begin <= end <= room or end - begin != wanted:
        raise SafetensorsError(
            f"{where} of shape {shape} needs {wanted} bytes, but lies at {begin} to {end} of {room} bytes of data."
        )
    return dtype, shape, begin, end


def _check_cover(path: str, spans: list[tuple[int, int, str]], room: int) -> None:
    position = 0
    for begin, end, name in sorted(spans):
        if begin != position:
            what = "overlaps the tensor before it" if begin < position else "leaves a gap before it"
            raise SafetensorsError(f"{path}: tensor '{name}' {what}.")
        position = end
    if position != room:
        raise SafetensorsError(f"{path}: the tensors cover {position} bytes, but there are {room} bytes of data.")
