"""Writes small .tflite files for tests: tables with their fields by number, each in eight bytes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9}


def write(out: bytearray, value: Any) -> int:
    """Appends a table (dict), a list of tables or numbers, text or bytes; returns its place."""
    out += b"\0" * (-len(out) % 8)
    if isinstance(value, dict):
        return _write_table(out, value)
    if isinstance(value, (bytes, str)):
        content = value if isinstance(value, bytes) else value.encode() + b"\0"
        place = len(out)
        out += struct.pack("<I", len(value)) + content
        return place
    if isinstance(value, np.ndarray):
        place = len(out)
        out += struct.pack("<I", value.size) + value.tobytes()
        return place
    place = len(out)
    out += struct.pack("<I", len(value)) + bytes(4 * len(value))
    for i, item in enumerate(value):
        slot = place + 4 + 4 * i
        struct.pack_into("<I", out, slot, write(out, item) - slot)
    return place


def _write_table(out: bytearray, fields: dict[int, Any]) -> int:
    count = max(fields, default=-1) + 1
    offsets = {field: 4 + 8 * i for i, field in enumerate(fields)}
    before = len(out)
    out += struct.pack("<HH", 4 + 2 * count, 4 + 8 * len(fields)) + b"".join(struct.pack("<H", offsets.get(i, 0)) for i in range(count))
    place = len(out)
    out += struct.pack("<i", place - before) + bytes(8 * len(fields))
    for field, value in fields.items():
        slot = place + offsets[field]
        if isinstance(value, float):
            struct.pack_into("<f", out, slot, value)
        elif isinstance(value, int):
            struct.pack_into("<q", out, slot, value)
        else:
            struct.pack_into("<I", out, slot, write(out, value) - slot)
    return place


def tensor(name: str, shape: Any, dtype: str = "float32", buffer: int = 0, scale: Any = None, zero: Any = 0, axis: int = 0) -> dict[int, Any]:
    made: dict[int, Any] = {0: np.int32([max(s, 1) for s in shape]), 1: TYPES[dtype], 2: buffer, 3: name}
    if any(size < 0 for size in shape):
        made[7] = np.int32(shape)
    if scale is not None:
        made[4] = {2: np.float32(np.atleast_1d(scale)), 3: np.int64(np.atleast_1d(zero)), 6: axis}
    return made


def model(ops: list[tuple[int, list[int], list[int], dict[int, Any]]], tensors: list[Any], inputs: list[int], outputs: list[int]) -> bytes:
    """Ops are (code, inputs, outputs, options). A tensor is what `tensor` makes, or an array: a constant; or (array, arguments of `tensor`)."""
    buffers: list[dict[int, Any]] = [{}]
    tables = []
    for number, one in enumerate(tensors):
        if isinstance(one, dict):
            tables.append(one)
            continue
        array, more = one if isinstance(one, tuple) else (one, {})
        buffers.append({0: np.frombuffer(array.tobytes(), np.uint8)})
        tables.append(tensor(f"c{number}", array.shape, array.dtype.name, len(buffers) - 1, **more))
    codes = sorted({code for code, *_ in ops})
    operators = [{0: codes.index(code), 1: np.int32(i), 2: np.int32(o), 4: options} for code, i, o, options in ops]
    graph = {0: tables, 1: np.int32(inputs), 2: np.int32(outputs), 3: operators}
    out = bytearray(b"\0\0\0\0TFL3")
    root = write(out, {0: 3, 1: [{0: min(code, 127), 3: code} for code in codes], 2: [graph], 4: buffers})
    struct.pack_into("<I", out, 0, root)
    return bytes(out)
