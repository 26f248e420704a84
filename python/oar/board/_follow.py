"""Follows log files while they grow."""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oar.board._events import EventDecoder
from oar.board._items import Item, Purge
from oar.board._records import Damaged, EventFraming, Framing, VisualDLFraming
from oar.board._series import Place
from oar.board._visualdl import VisualDLDecoder

__all__ = ["LogFile", "is_log", "unreadable_log"]

# Whatever a decoder meets in bytes that are not what it expects.
_MISREAD = (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, struct.error)


def is_log(name: str) -> bool:
    """Whether a file of this name holds logs that can be read."""
    return "tfevents" in name or "vdlrecords" in name


def unreadable_log(name: str) -> str:
    """Why a file that looks like a log cannot be read; empty for other files."""
    if name.startswith("vdlgraph."):
        return "graphs of VisualDL are not read; write them with LogWriter.add_graph of oar.board"
    return ""


class LogFile:
    """One file, and how far it has been read.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        numbers = re.findall(r"\d{9,}", path.name)
        self.place: Place = (int(numbers[0]) if numbers else 0, path.name)
        self.problem = ""  # what is wrong with the file
        self.behind = False  # whether the last read stopped before the end
        self._at = 0
        self._identity: tuple[int, int] | None = None
        self._framing: Framing | None = None
        self._decoder: EventDecoder | VisualDLDecoder = EventDecoder()
        self._skipped = 0
        self._stopped = False
        self._lock = threading.Lock()

    def was_replaced(self) -> bool:
        """Whether it is another file than the one that was read: what came from it must be read again."""
        if self._identity is None:
            return False
        status = os.stat(self.path)
        return (status.st_dev, status.st_ino) != self._identity or status.st_size < self._at

    def read(self, most: int) -> Iterator[tuple[int, int, Item | Purge]]:
        """What the file has gained: the place of each record, the number of the item in it, and the item.

        Args:
            most: stop after about so many bytes; the next call goes on.
        """
        self.behind = False
        if self._stopped:
            return
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            self._identity = (status.st_dev, status.st_ino)
            if status.st_size <= self._at or not self._recognise(file, status.st_size):
                return
            assert self._framing is not None
            end = self._at + most
            while self._at < end:
                try:
                    found = self._framing.read(file, self._at, status.st_size)
                except Damaged as damage:
                    if damage.next_at is None:
                        self._stop(f"{damage}; what follows is not read")
                        return
                    self._skip(str(damage))
                    self._at = damage.next_at
                    continue
                if found is None:
                    return
                at, (record, self._at) = self._at, found
                try:
                    items = self._decoder.items(record)
                except _MISREAD as error:
                    self._skip(f"the record at byte {at} cannot be read: {error}")
                    continue
                for number, item in enumerate(items):
                    yield at, number, item
            self.behind = True

    def fetch(self, at: int, number: int) -> Item:
        """An item, read once more."""
        with self._lock, open(self.path, "rb") as file:
            assert self._framing is not None
            found = self._framing.read(file, at, os.fstat(file.fileno()).st_size)
            item: Any = None if found is None else self._decoder.items(found[0])[number]
        if not isinstance(item, Item):
            raise ValueError(f"{self.path.name} has changed")
        return item

    def _recognise(self, file: Any, size: int) -> bool:
        if self._framing is not None:
            return True
        if size < 12:
            return False
        events = EventFraming()
        try:
            events.length(file.read(12), 0)
            self._framing = events
        except Damaged as damage:
            if "tfevents" in self.path.name:
                self._stop(f"this is no event file: {damage}")
                return False
            self._framing, self._decoder = VisualDLFraming(), VisualDLDecoder()
        return True

    def _stop(self, problem: str) -> None:
        self._stopped = True
        self._say(problem)

    def _skip(self, problem: str) -> None:
        self._skipped += 1
        self._say(problem if self._skipped == 1 else f"{self._skipped} records were left out; the last: {problem}")

    def _say(self, problem: str) -> None:
        self.problem = problem
