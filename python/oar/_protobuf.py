"""The wire format of protocol buffers: fields of a message as bytes, and back. Every length is checked before it is used."""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["double_field", "doubles", "field", "fields", "float_field", "floats", "integers", "message", "packed_doubles", "signed",
           "text", "varint"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """An integer in as few bytes as it needs; a negative one as its two's complement of 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    """A field: an integer, a text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(content)) + content


def float_field(number: int, value: float) -> bytes:
    """A field of type float. What is too large for it becomes infinite."""
    try:
        return varint(number << 3 | _FIXED32) + struct.pack("<f", value)
    except OverflowError:
        return varint(number << 3 | _FIXED32) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def double_field(number: int, value: float) -> bytes:
    """A field of type double."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def packed_doubles(number: int, values: Iterable[float]) -> bytes:
    """A repeated field of type double."""
    listed = list(values)
    return field(number, struct.pack(f"<{len(listed)}d", *listed))


def message(*values: int | str | bytes) -> bytes:
    """A message whose fields are numbered from 1."""
    return b"".join(field(i, value) for i, value in enumerate(values, 1))


# reading ---------------------------------------------------------------------------------------------


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at


def fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field: an integer, or a view of the bytes of everything else."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            size, at = _read_varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"a field has the unknown wire type {wire}")
        if at + size > len(data):
            raise ValueError("a field does not end")
        yield key >> 3, data[at : at + size]
        at += size


def text(value: memoryview | bytes) -> str:
    """A field of type string."""
    return bytes(value).decode()


def signed(value: int) -> int:
    """The number whose two's complement of 64 bits this is."""
    return value - (1 << 64) if value >> 63 else value


def _unpacked(value: memoryview, letter: str, size: int) -> tuple[float, ...]:
    if len(value) % size:
        raise ValueError(f"{len(value)} bytes are no list of numbers of {size} bytes")
    return struct.unpack(f"<{len(value) // size}{letter}", value)


def floats(value: memoryview) -> tuple[float, ...]:
    """The numbers of a field of type float; a single one is a list of one."""
    return _unpacked(value, "f", 4)


def doubles(value: memoryview) -> tuple[float, ...]:
    """The numbers of a field of type double; a single one is a list of one."""
    return _unpacked(value, "d", 8)


def integers(value: memoryview | int) -> list[int]:
    """The integers of a repeated field, packed or single."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = _read_varint(value, at)
        found.append(signed(number))
    return found
