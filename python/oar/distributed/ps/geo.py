"""Rows that a worker changes itself between two exchanges with the servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar._lazy import np

__all__ = ["LocalRows"]


class LocalRows:
    """Rows by their keys, which are sorted, with the values that they had on the server."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._clear()

    def _clear(self) -> None:
        self._keys = np.empty(0, "int64")
        self._values = np.empty((0, self._width), "float32")
        self._base = self._values

    def read(self, keys: Any, pull: Callable[[Any], Any]) -> Any:
        """The rows of keys. Those that are not here yet are pulled."""
        missing = np.setdiff1d(keys, self._keys)
        if len(missing):
            rows = pull(missing)
            every = np.concatenate([self._keys, missing])
            order = np.argsort(every)
            self._keys = every[order]
            self._values = np.concatenate([self._values, rows])[order]
            self._base = np.concatenate([self._base, rows])[order]
        return self._values[np.searchsorted(self._keys, keys)]

    def update(self, keys: Any, gradients: Any, rate: float) -> None:
        """A step of SGD on rows that were read; the keys differ."""
        self._values[np.searchsorted(self._keys, keys)] -= np.float32(rate) * gradients

    def take_deltas(self) -> tuple[Any, Any]:
        """What has changed since the rows were pulled. They are pulled again afterwards."""
        keys, deltas = self._keys, self._values - self._base
        changed = deltas.any(axis=1)
        self._clear()
        return keys[changed], deltas[changed]
