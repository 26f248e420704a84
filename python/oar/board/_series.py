"""What one run logged under one tag, in bounded memory.

A series that becomes too long keeps every second of its points, then every fourth, and so on; its newest point is always there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

__all__ = ["Place", "ScalarSeries", "Series"]

# When a file was begun, and its name: a later file is larger.
Place = tuple[int, str]


class Series:
    """Points (step, wall, value). A file that was begun later replaces what earlier ones say from its first step on: that is what a
    run does that begins again at a checkpoint.

    Args:
        most: how many points to keep.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._stride = 1
        self._seen = 0
        self._newest: tuple[int, float, Any] | None = None
        self._file: Place | None = None
        self._start = 0
        self.version = 0
        self._clear()

    def add(self, file: Place, point: tuple[int, float, Any]) -> bool:
        """Adds a point of a file; False if a later file has replaced it."""
        if self._file is None:
            self._file = file
        elif file > self._file:
            self.purge(point[0])
            self._file, self._start = file, point[0]
        elif file < self._file and point[0] >= self._start:
            return False
        if self._seen % self._stride == 0:
            self._append(point)
            self._newest = None
            if len(self) > self._most:
                self._newest = point if len(self) % 2 == 0 else None  # halving drops the last of an even number
                self._halve()
                self._stride *= 2
        else:
            self._newest = point
        self._seen += 1
        return True

    def purge(self, step: int) -> None:
        """Removes the points from a step on."""
        kept = [point for point in self if point[0] < step]
        self._clear()
        for point in kept:
            self._append(point)
        self._newest = None
        self._seen = len(kept) * self._stride

    def __iter__(self) -> Iterator[tuple[int, float, Any]]:
        yield from self._listed()
        if self._newest is not None:
            yield self._newest

    @property
    def seen(self) -> int:
        """How many points there were."""
        return self._seen

    @property
    def last(self) -> tuple[int, float, Any] | None:
        """The newest point."""
        if self._newest is not None:
            return self._newest
        return self._at(len(self) - 1) if len(self) else None

    # ---- how points are kept

    def _clear(self) -> None:
        self._points: list[tuple[int, float, Any]] = []

    def _append(self, point: tuple[int, float, Any]) -> None:
        self._points.append(point)

    def _halve(self) -> None:
        self._points = self._points[::2]

    def _at(self, index: int) -> tuple[int, float, Any]:
        return self._points[index]

    def _listed(self) -> Iterator[tuple[int, float, Any]]:
        return iter(list(self._points))

    def __len__(self) -> int:
        return len(self._points)


class ScalarSeries(Series):
    """Numbers, which take 24 bytes each."""

    def _clear(self) -> None:
        self._steps, self._walls, self._values = array("q"), array("d"), array("d")

    def _append(self, point: tuple[int, float, Any]) -> None:
        self._steps.append(point[0])
        self._walls.append(point[1])
        self._values.append(point[2])

    def _halve(self) -> None:
        self._steps, self._walls, self._values = self._steps[::2], self._walls[::2], self._values[::2]

    def _at(self, index: int) -> tuple[int, float, Any]:
        return self._steps[index], self._walls[index], self._values[index]

    def _listed(self) -> Iterator[tuple[int, float, Any]]:
        return zip(self._steps[:], self._walls[:], self._values[:])

    def __len__(self) -> int:
        return len(self._steps)
