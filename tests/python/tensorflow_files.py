"""Writes small files of TensorFlow for tests: GraphDefs, SavedModels with their variables, models of TensorFlow.js."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "int64": 9, "bool": 10, "float16": 19, "resource": 20,
         "variant": 21}


class Type(str):
    """A dtype as an attribute."""


class Shape(tuple[int, ...]):
    """A shape as an attribute; -1 is open."""


class Function(str):
    """The name of a function as an attribute."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Any) -> bytes:
    """One field: bytes, text, an integer or a float."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(int(value))


def shape_of(sizes: Any) -> bytes:
    return b"".join(field(2, field(1, size)) for size in sizes)


def tensor(array: Any) -> bytes:
    """A TensorProto; a list of texts is a tensor of texts."""
    if isinstance(array, list):
        return field(1, TYPES["string"]) + field(2, shape_of([len(array)])) + b"".join(field(8, text) for text in array)
    array = np.asarray(array)
    return field(1, TYPES[array.dtype.name]) + field(2, shape_of(array.shape)) + field(4, array.tobytes())


def attribute(value: Any) -> bytes:
    if isinstance(value, Type):
        return field(6, TYPES[value])
    if isinstance(value, Shape):
        return field(7, shape_of(value))
    if isinstance(value, Function):
        return field(10, field(1, str(value)))
    if isinstance(value, np.ndarray) or (isinstance(value, list) and value and isinstance(value[0], str) and not isinstance(value[0], Function)):
        return field(8, tensor(value))
    if isinstance(value, bytes):  # a TensorProto
        return field(8, value)
    if isinstance(value, bool):
        return field(5, value)
    if isinstance(value, (int, float)):
        return field(4 if isinstance(value, float) else 3, value)
    if isinstance(value, list):
        return field(1, b"".join(field(9, field(1, str(v))) if isinstance(v, Function) else field(3, v) for v in value))
    return field(2, value)


def node(name: str, op: str, *inputs: str, **attributes: Any) -> bytes:
    made = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
    return made + b"".join(field(5, field(1, key) + field(2, attribute(value))) for key, value in attributes.items())


def const(name: str, array: Any) -> bytes:
    kind = "string" if isinstance(array, list) else np.asarray(array).dtype.name
    return node(name, "Const", dtype=Type(kind), value=array if isinstance(array, list) else np.asarray(array))


def placeholder(name: str, *shape: int, dtype: str = "float32") -> bytes:
    return node(name, "Placeholder", dtype=Type(dtype), shape=Shape(shape))


def function(name: str, arguments: list[str], results: dict[str, str], nodes: list[bytes]) -> bytes:
    """Results say which output of a node they are."""
    signature = field(1, name) + b"".join(field(2, field(1, a)) for a in arguments) + b"".join(field(3, field(1, r)) for r in results)
    return field(1, signature) + b"".join(field(3, n) for n in nodes) + b"".join(
        field(4, field(1, key) + field(2, value)) for key, value in results.items())


def graph(nodes: list[bytes], functions: list[bytes] = []) -> bytes:  # noqa: B006
    made = b"".join(field(1, n) for n in nodes)
    return made + (field(2, b"".join(field(1, f) for f in functions)) if functions else b"")


# ---- SavedModels -----------------------------------------------------------------------------------


def _crc_table() -> list[int]:
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC = _crc_table()


def checksum(content: bytes) -> int:
    word = 0xFFFFFFFF
    for byte in content:
        word = CRC[(word ^ byte) & 0xFF] ^ word >> 8
    word ^= 0xFFFFFFFF
    return ((word >> 15 | word << 17) + 0xA282EAD8) & 0xFFFFFFFF


def table(entries: dict[str, bytes], marks: bytes = struct.pack("<Q", 0xDB4775248B80FB57)) -> bytes:
    """A table file with one block, whose keys share their beginnings."""

    def block(rows: list[tuple[bytes, bytes]]) -> bytes:
        made, before = b"", b""
        for key, value in rows:
            shared = 0
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
            made += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
            before = key
        made += struct.pack("<II", 0, 1)
        return made + b"\0" + struct.pack("<I", checksum(made + b"\0"))

    data = block(sorted((key.encode(), value) for key, value in entries.items()))
    index = block([(b"~", varint(0) + varint(len(data) - 5))])
    notes = block([])
    handles = varint(len(data)) + varint(len(notes) - 5) + varint(len(data) + len(notes)) + varint(len(index) - 5)
    return data + notes + index + handles + bytes(40 - len(handles)) + marks


def checkpoint(variables: dict[str, np.ndarray], **wrong: int) -> tuple[bytes, bytes]:
    """The index and the data of variables. `wrong` replaces numbers of each entry."""
    content, entries = b"", {"": field(1, 1) + field(3, field(1, 1))}
    for name, array in variables.items():
        bytes_of = array.tobytes()
        numbers = {"offset": len(content), "size": len(bytes_of), "shard": 0, **wrong}
        entries[name] = (field(1, TYPES[array.dtype.name]) + field(2, shape_of(array.shape)) + field(3, numbers["shard"]) +
                         field(4, numbers["offset"]) + field(5, numbers["size"]) + varint(6 << 3 | 5) + struct.pack("<I", checksum(bytes_of)))
        content += bytes_of
    return table(entries), content


def restoring(variables: list[str]) -> tuple[list[bytes], bytes]:
    """The nodes of variables and of what restores them, and the function they call."""
    nodes = [node(name, "VarHandleOp", dtype=Type("float32"), shared_name=name) for name in variables]
    nodes.append(node("prefix", "Placeholder", dtype=Type("string"), shape=Shape()))
    nodes.append(node("restore", "StatefulPartitionedCall", "prefix", *variables, f=Function("restoring")))
    inside = [const("keys", [f"key/{name}" for name in variables]), const("parts", ["" for _ in variables]),
              node("read", "RestoreV2", "prefix", "keys:output:0", "parts:output:0")]
    for i, name in enumerate(variables):
        inside += [node(f"same_{i}", "Identity", f"read:tensors:{i}"), node(f"assign_{i}", "AssignVariableOp", name, f"same_{i}:output:0")]
    return nodes, function("restoring", ["prefix", *variables], {"out": "prefix"}, inside)


def saved_model(graph_def: bytes, signatures: dict[str, tuple[dict[str, tuple[str, Any]], dict[str, str]]], restore: str = "") -> bytes:
    """A signature is ({name: (tensor, shape)}, {name: tensor})."""

    def entry(number: int, key: str, value: bytes) -> bytes:
        return field(number, field(1, key) + field(2, value))

    made = b""
    for name, (inputs, outputs) in signatures.items():
        ends = b"".join(entry(1, key, field(1, place) + field(2, 1) + field(3, shape_of(shape))) for key, (place, shape) in inputs.items())
        ends += b"".join(entry(2, key, field(1, place) + field(2, 1)) for key, place in outputs.items())
        made += entry(5, name, ends)
    meta = field(1, field(4, "serve")) + field(2, graph_def) + (field(3, field(3, restore)) if restore else b"") + made
    return field(1, 1) + field(2, meta)


def write_saved_model(folder: Path, content: bytes, index: bytes | None = None, data: bytes = b"") -> Path:
    (folder / "variables").mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(content)
    if index is not None:
        (folder / "variables" / "variables.index").write_bytes(index)
        (folder / "variables" / "variables.data-00000-of-00001").write_bytes(data)
    return folder


# ---- TensorFlow.js ---------------------------------------------------------------------------------


def web_model(nodes: list[dict[str, Any]], weights: list[dict[str, Any]], paths: list[str], **more: Any) -> str:
    return json.dumps({"format": "graph-model", "modelTopology": {"node": nodes}, "weightsManifest": [{"paths": paths, "weights": weights}], **more})
