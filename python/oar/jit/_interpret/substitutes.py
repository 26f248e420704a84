"""Functions of Python's that call other functions, written in Python: they are interpreted instead of the originals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["all_true", "any_true", "chained", "filtered", "items_of", "mapped", "reduced", "total"]

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


def reduced(function: Any, items: Any, start: Any = _NOTHING) -> Any:
    """``functools.reduce``"""
    it = iter(items)
    value = next(it) if start is _NOTHING else start
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
