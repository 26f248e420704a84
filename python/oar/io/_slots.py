"""Memory that a worker and its parent share.

A *slot* is a piece of memory without a name that both processes map: it grows when a batch needs more, is used again
batch after batch, and vanishes with the last process, however that ends. It does not take room in ``/dev/shm``.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

from oar._lazy import np

__all__ = ["Arena", "Slot", "Spot"]

_ALIGNMENT = 64


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("oar-batch", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _adopted_slot(handle: Any) -> Slot:
    return Slot(handle.detach())


class Slot:
    """Shared memory for one batch at a time."""

    def __init__(self, file: int | None = None) -> None:
        self._file = _anonymous_file() if file is None else file
        self._map: mmap.mmap | None = None

    def __reduce__(self) -> Any:
        from multiprocessing import reduction  # only while a process is spawned

        return _adopted_slot, (reduction.DupFd(self._file),)

    def memory(self, size: int) -> mmap.mmap:
        """At least ``size`` bytes of the slot, which grows to hold them. ``OSError`` if there is no room.

        The room is reserved here, so that a write never finds that there is none, which would end the process.
        """
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file).st_size < size:
                os.posix_fallocate(self._file, 0, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return self._map

    def close(self) -> None:
        """Give the file back; arrays that are still alive keep their memory."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._map = None


class Spot(tuple):
    """Where in a slot an array is: its offset, its shape and its dtype."""

    __slots__ = ()

    def __new__(cls, *content: Any) -> Spot:
        return super().__new__(cls, content)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def array(self, memory: Any) -> np.ndarray:
        """The array, on the memory of the slot."""
        offset, shape, dtype = self
        return np.ndarray(shape, dtype, memory, offset)

    @property
    def end(self) -> int:
        """Where the next array could start."""
        offset, shape, dtype = self
        return offset + int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


class Arena:
    """Puts the arrays of one batch into a slot, one after the other.

    ``used`` is how many bytes they take. ``full`` says why the slot cannot grow, once it cannot; from then on arrays have
    memory of their own.
    """

    def __init__(self, slot: Slot) -> None:
        self.full = ""
        self._slot = slot
        self.used = 0
        self._given: dict[int, tuple[np.ndarray, Spot]] = {}

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array to be filled, in the slot if there is room."""
        spot = Spot(self.used, shape, dtype.str if dtype.kind != "V" else dtype)
        size = max(spot.end - self.used, 1)
        try:
            memory = self._slot.memory(self.used + size)
        except OSError as error:
            self.full = str(error)
            return np.empty(shape, dtype)
        self.used += -(-size // _ALIGNMENT) * _ALIGNMENT
        array = spot.array(memory)
        self._given[id(array)] = (array, spot)
        return array

    def spot(self, array: np.ndarray) -> Spot | None:
        """Where ``array`` is in the slot; it is copied there unless it came from ``empty``. None: there is no room."""
        if id(array) not in self._given:
            if self.full:
                return None
            copy = self.empty(array.shape, array.dtype)
            if self.full:
                return None
            copy[...] = array
            array = copy
        return self._given[id(array)][1]
