"""Writes small ONNX files for tests: the few messages of the format that they need."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    made = b""
    while number >= 0x80:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def field(number: int, value: Any) -> bytes:
    if isinstance(value, bool) or isinstance(value, (int, np.integer)):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(array: Any, name: str = "") -> bytes:
    array = np.asarray(array)
    sizes = b"".join(field(1, size) for size in array.shape)
    return sizes + field(2, TYPES[array.dtype.name]) + field(8, name) + field(9, array.tobytes())


def attribute(name: str, value: Any) -> bytes:
    made = field(1, name)
    if isinstance(value, float):
        return made + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return made + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return made + field(4, value) + field(20, 3)
    if isinstance(value, np.ndarray):
        return made + field(5, tensor(value)) + field(20, 4)
    if isinstance(value, bytes):  # what `graph` returns
        return made + field(6, value) + field(20, 5)
    if value and isinstance(value[0], str):
        return made + b"".join(field(9, v) for v in value) + field(20, 8)
    if value and isinstance(value[0], float):
        return made + b"".join(field(7, v) for v in value) + field(20, 6)
    return made + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> bytes:
    made = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    made += field(3, f"the {op}") + field(4, op) + field(7, domain)
    return made + b"".join(field(5, attribute(name, value)) for name, value in attributes.items())


def port(name: str, shape: Sequence[int | str] | None = None, dtype: str = "float32") -> bytes:
    kind = field(1, TYPES[dtype])
    if shape is not None:
        kind += field(2, b"".join(field(1, field(2, s) if isinstance(s, str) else field(1, s)) for s in shape))
    return field(1, name) + field(2, field(1, kind))


def graph(nodes: Sequence[bytes], outputs: Sequence[str]) -> bytes:
    """The body of a node, such as a branch."""
    return b"".join(field(1, n) for n in nodes) + field(2, "body") + b"".join(field(12, port(o)) for o in outputs)


def model(nodes: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[str], weights: dict[str, Any] | None = None,
          opset: int = 17, types: bool = True) -> bytes:
    """`types`: outputs are said to be float32."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    graph += b"".join(field(5, tensor(w, name)) for name, w in (weights or {}).items())
    graph += b"".join(field(11, i) for i in inputs) + b"".join(field(12, port(o) if types else field(1, o)) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(2, opset))
