"""Which elements of a tensor a piece has, and how one piece is filled from others.

A piece is a box of the tensor, or a run of the elements of a box in the order of memory. Such a run is a few boxes: so all that is
ever copied is the common part of two boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from oar._lazy import np

__all__ = ["Box", "copy_common", "have_common", "run_of_boxes"]

Box = tuple[tuple[int, ...], tuple[int, ...]]  # where it begins, and its sizes


def run_of_boxes(shape: Sequence[int], begin: int, end: int) -> Iterator[Box]:
    """The elements from ``begin`` to before ``end`` of a tensor, counted in the order of memory, as boxes in that order."""
    if begin >= end:
        return
    if not shape:
        yield (), ()
        return
    row = math.prod(shape[1:])
    first, last = -(-begin // row), end // row  # whole rows
    if first > last:  # within one row
        yield from _within(shape, last, begin - last * row, end - last * row)
        return
    if begin < first * row:
        yield from _within(shape, first - 1, begin - (first - 1) * row, row)
    if first < last:
        yield (first, *[0] * (len(shape) - 1)), (last - first, *shape[1:])
    if last * row < end:
        yield from _within(shape, last, 0, end - last * row)


def _within(shape: Sequence[int], row: int, begin: int, end: int) -> Iterator[Box]:
    for offset, sizes in run_of_boxes(shape[1:], begin, end):
        yield (row, *offset), (1, *sizes)


def _common(a: Box, b: Box) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """Where the common part of two boxes lies in each of them."""
    in_a, in_b = [], []
    for a_begin, a_size, b_begin, b_size in zip(a[0], a[1], b[0], b[1]):
        begin, end = max(a_begin, b_begin), min(a_begin + a_size, b_begin + b_size)
        if begin >= end:
            return None
        in_a.append(slice(begin - a_begin, end - a_begin))
        in_b.append(slice(begin - b_begin, end - b_begin))
    return tuple(in_a), tuple(in_b)


def have_common(a: Box, b: Box) -> bool:
    """Whether two boxes have an element in common."""
    return _common(a, b) is not None


def copy_common(to: list[tuple[Box, np.ndarray]], source: list[tuple[Box, np.ndarray]]) -> int:
    """Copies the elements that two pieces share; returns how many."""
    count = 0
    for to_box, to_array in to:
        for source_box, source_array in source:
            where = _common(to_box, source_box)
            if where is not None:
                to_array[where[0]] = source_array[where[1]]
                count += to_array[where[0]].size
    return count
