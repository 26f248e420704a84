"""Functions of Python's that call other functions, written in Python: they are interpreted instead of the originals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = [
    "all_true", "any_true", "chained", "filtered", "items_of", "mapped", "numbered", "reduced", "sliced", "total", "zipped",
]

_NOTHING: Any = object()


def items_of(sequence: Any) -> Iterator[Any]:
    """Goes over an object that has ``__getitem__`` alone."""
    i = 0
    while True:
        try:
            item = sequence[i]
        except IndexError:
            return
        yield item
        i += 1


def mapped(function: Any, first: Any, *more: Any) -> Iterator[Any]:
    """``map``"""
    if not more:
        for item in first:
            yield function(item)
    else:
        for items in zip(first, *more):
            yield function(*items)


def filtered(function: Any, items: Any) -> Iterator[Any]:
    """``filter``"""
    for item in items:
        if (item if function is None else function(item)):
            yield item


def chained(lists: Any) -> Iterator[Any]:
    """``itertools.chain.from_iterable``"""
    for items in lists:
        yield from items


def numbered(items: Any, start: int = 0) -> Iterator[Any]:
    """``enumerate``"""
    for item in items:
        yield start, item
        start += 1


def zipped(*iterators: Any) -> Iterator[Any]:
    """``zip``"""
    while iterators:
        row = []
        for it in iterators:
            item = next(it, _NOTHING)
            if item is _NOTHING:
                return
            row.append(item)
        yield tuple(row)


def sliced(items: Any, first: int | None, *rest: int | None) -> Iterator[Any]:
    """``itertools.islice``"""
    start, stop = (0, first) if not rest else (first or 0, rest[0])
    step = rest[1] if len(rest) > 1 and rest[1] is not None else 1
    place, wanted = 0, start
    while stop is None or place < stop:
        item = next(items, _NOTHING)
        if item is _NOTHING:
            return
        if place == wanted:
            yield item
            wanted += step
        place += 1


def reduced(function: Any, items: Any, start: Any = _NOTHING) -> Any:
    """``functools.reduce``"""
    it = iter(items)
    value = next(it, _NOTHING) if start is _NOTHING else start
    if value is _NOTHING:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in it:
        value = function(value, item)
    return value


def any_true(items: Any) -> bool:
    """``any``"""
    for item in items:
        if item:
            return True
    return False


def all_true(items: Any) -> bool:
    """``all``"""
    for item in items:
        if not item:
            return False
    return True


def total(items: Any, start: Any = 0) -> Any:
    """``sum``"""
    value = start
    for item in items:
        value = value + item
    return value
