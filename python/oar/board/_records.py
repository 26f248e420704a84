"""Files of records: those of TensorBoard, whose parts have checksums, and those of VisualDL, whose parts have none.

A file that is being written ends in the middle of a record most of the time, so a reader takes what is complete and comes back for
the rest.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from oar import _C

__all__ = ["LARGEST_RECORD", "Damaged", "EventFraming", "Framing", "VisualDLFraming", "framed", "masked_crc"]

LARGEST_RECORD = 1 << 30
_LENGTH = struct.Struct("<Q")
_CHECK = struct.Struct("<I")


class Damaged(ValueError):
    """The bytes are not what a writer wrote. ``next_at`` is where the next record begins, if that is known."""

    def __init__(self, problem: str, next_at: int | None = None) -> None:
        super().__init__(problem)
        self.next_at = next_at


def masked_crc(data: bytes | memoryview) -> int:
    """The checksum of a part of a record: its CRC-32C, rotated by 15 bits, plus a constant."""
    value = _C.crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """A record of an event file: the length, the data, and a checksum of each."""
    length = _LENGTH.pack(len(data))
    return b"".join((length, _CHECK.pack(masked_crc(length)), data, _CHECK.pack(masked_crc(data))))


class Framing:
    """How records follow each other in a file."""

    head = 0  # bytes before the data
    tail = 0  # bytes after it

    def read(self, file: BinaryIO, at: int, size: int) -> tuple[bytes, int] | None:
        """The record at a place, and the place of the next one.

        Args:
            file: an open file.
            at: where the record begins.
            size: how long the file is at the moment.

        Returns:
            None if the record is not complete yet.
        """
        if at + self.head > size:
            return None
        file.seek(at)
        head = file.read(self.head)
        if len(head) < self.head:
            return None
        length = self.length(head, at)
        if length > LARGEST_RECORD:
            raise Damaged(f"the record at byte {at} should have {length} bytes")
        end = at + self.head + length + self.tail
        if end > size:
            return None
        data = file.read(length + self.tail)
        if len(data) < length + self.tail:
            return None
        self.check(data, length, at, end)
        return data[:length], end

    def length(self, head: bytes, at: int) -> int:
        """What the head of a record says about its length."""
        raise NotImplementedError

    def check(self, data: bytes, length: int, at: int, end: int) -> None:
        """Raises an error if the data are not those that were written."""


class EventFraming(Framing):
    """Length, its checksum, the data, their checksum."""

    head, tail = 12, 4

    def length(self, head: bytes, at: int) -> int:
        if _CHECK.unpack_from(head, 8)[0] != masked_crc(head[:8]):
            raise Damaged(f"the checksum of the length at byte {at} is wrong")
        return _LENGTH.unpack_from(head)[0]

    def check(self, data: bytes, length: int, at: int, end: int) -> None:
        if _CHECK.unpack_from(data, length)[0] != masked_crc(memoryview(data)[:length]):
            raise Damaged(f"the checksum of the record at byte {at} is wrong", next_at=end)


class VisualDLFraming(Framing):
    """Length and data."""

    head = 8

    def length(self, head: bytes, at: int) -> int:
        return _LENGTH.unpack(head)[0]
