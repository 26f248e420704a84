"""The file that a ``LogWriter`` writes to: records wait in memory for a moment, and go to the file whole."""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
import weakref
from pathlib import Path

from oar.board._records import framed
from oar.board._summaries import first_event

__all__ = ["EventFile"]

_open_files: weakref.WeakSet[EventFile] = weakref.WeakSet()
_number = 0


@atexit.register
def _flush_all() -> None:
    for file in list(_open_files):
        file.flush()


def _leave_to_parent() -> None:
    for file in list(_open_files):
        file.forget()


os.register_at_fork(after_in_child=_leave_to_parent)


def _fresh_name(suffix: str) -> str:
    """By time, so that files sort as they were written, and by what tells writers at one moment apart."""
    global _number
    _number += 1
    return f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{_number}{suffix}"


class EventFile:
    """An event file. Any thread may write. A process that was forked writes to a file of its own.

    Args:
        folder: where it is.
        name: its name; empty for a new one. Records are added to a file that exists.
        suffix: the end of a new name.
        max_queue: so many records may wait.
        flush_secs: so many seconds a record may wait.
    """

    def __init__(self, folder: Path, name: str, suffix: str, max_queue: int, flush_secs: float) -> None:
        self._folder, self._suffix = folder, suffix
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._timer: threading.Timer | None = None
        self._open(name)
        _open_files.add(self)

    def _open(self, name: str) -> None:
        self._forked = False
        self._folder.mkdir(parents=True, exist_ok=True)
        self.path = self._folder / (name or _fresh_name(self._suffix))
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        if self.path.stat().st_size == 0:
            self._file.write(framed(first_event(time.time())))

    def forget(self) -> None:
        """In a forked process: what waits belongs to the parent, as does the file."""
        self._lock = threading.RLock()
        self._waiting, self._timer, self._forked = [], None, True

    def write(self, record: bytes) -> None:
        """Adds a record."""
        with self._lock:
            if self._forked:
                self._open("")
            if self._file.closed:
                raise ValueError(f"[LogWriter] the writer of {self.path} is closed. Write before close(), or create another one.")
            self._waiting.append(framed(record))
            if len(self._waiting) >= self._max_queue:
                self.flush()
            elif self._timer is None:
                self._timer = threading.Timer(self._flush_secs, self._time_is_up)
                self._timer.daemon = True
                self._timer.start()

    def _time_is_up(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Writes what waits."""
        with self._lock:
            if not self._waiting or self._file.closed:
                return
            data = memoryview(b"".join(self._waiting))
            self._waiting = []
            while data:
                data = data[self._file.write(data) :]

    def close(self) -> None:
        """Writes what waits and closes the file."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if not self._forked:
                self.flush()
            self._file.close()
