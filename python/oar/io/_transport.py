"""How a batch travels from a worker to its parent.

A *slot* is a piece of memory without a name that both processes map: it exists before the fork, grows when a
batch needs more, is used again batch after batch, and vanishes with the last process, however that ends. The
arrays of a batch are in the slot; the pipe carries only their offsets.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from collections.abc import Mapping
from typing import Any

from oar._lazy import np

__all__ = ["Slot", "decode", "encode"]

_ALIGNMENT = 64
_SMALL = 4096
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("oar-batch", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Slot:
    """Shared memory for one batch at a time."""

    def __init__(self) -> None:
        self._file = _anonymous_file()
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """At least ``size`` bytes of the slot, which grows to hold them."""
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file).st_size < size:
                os.ftruncate(self._file, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
            self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        return memoryview(self._map)

    def close(self) -> None:
        """Give the file back; views that are still alive keep their memory."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._map = None


def _is_plain(batch: Any) -> bool:
    """Whether a batch has values and containers only, so that nothing keeps a slot in use."""
    if isinstance(batch, Mapping):
        return all(_is_plain(value) for value in batch.values())
    if isinstance(batch, (list, tuple)):
        return all(_is_plain(value) for value in batch)
    return isinstance(batch, (*_PLAIN, np.ndarray, np.generic))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def encode(batch: Any, slot: Slot | None) -> tuple[bytes, list[int] | None]:
    """Put a batch into ``slot``; returns what goes through the pipe: a head and the buffers' sizes.

    Without a slot, and for batches with objects of other kinds, everything is in the head.
    """
    if slot is None or not _is_plain(batch):
        return pickle.dumps(batch, protocol=5), None
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    sizes = [view.nbytes for view in raw]
    in_pipe = len(head) <= _SMALL
    if not in_pipe:
        raw.append(memoryview(head))
        sizes.append(len(head))
    target = slot.view(sum(map(_aligned, sizes))) if sizes else memoryview(b"")
    start = 0
    for view, size in zip(raw, sizes):
        target[start : start + size] = view
        start += _aligned(size)
    return (head if in_pipe else b""), sizes


def decode(head: bytes, sizes: list[int] | None, slot: Slot | None) -> Any:
    """The batch that ``encode`` stored. Its arrays are in the slot: copy them before it is reused."""
    if sizes is None:
        return pickle.loads(head)
    views: list[memoryview] = []
    source = memoryview(b"")
    if sizes:
        assert slot is not None, "a batch with buffers comes with the slot that holds them"
        source = slot.view(sum(map(_aligned, sizes)))
    start = 0
    for size in sizes:
        views.append(source[start : start + size])
        start += _aligned(size)
    if not head:
        head = bytes(views.pop())
    return pickle.loads(head, buffers=views)
