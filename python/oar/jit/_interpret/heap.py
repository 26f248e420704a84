"""The contents of objects that a function created, so that two paths can start from one state."""

from __future__ import annotations

import collections
import types
from typing import Any

from oar.jit._interpret import known
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.world import ABSENT, Decline, World

__all__ = ["Heap", "clone", "fill", "same_place"]


class Heap:
    """The contents of all objects that were created inside, and the deferred writes."""

    def __init__(self, world: World) -> None:
        self.objects = dict(world.fresh_objects())
        self.contents = {key: _content(value) for key, value in self.objects.items()}
        self.unknown, self.dict_copies = dict(world.unknown), dict(world.dict_copies)
        pending = world.pending
        self.pending: dict[str, Any] = {
            "dicts": {k: (m, dict(w)) for k, (m, w) in pending.dicts.items()},
            "moved": dict(pending.moved),
            "copies": dict(pending.copies),
            "additions": {k: (c, list(calls)) for k, (c, calls) in pending.additions.items()},
            "cells": dict(pending.cells),
            "slots": dict(pending.slots),
            "calls": list(pending.calls),
        }

    def restore(self, world: World) -> None:
        """Puts every content back."""
        for key, value in self.objects.items():
            fill(value, self.contents[key])
        world.unknown, world.dict_copies = dict(self.unknown), dict(self.dict_copies)
        pending = world.pending
        pending.dicts = {k: (m, dict(w)) for k, (m, w) in self.pending["dicts"].items()}
        pending.moved, pending.copies = dict(self.pending["moved"]), dict(self.pending["copies"])
        pending.additions = {k: (c, list(calls)) for k, (c, calls) in self.pending["additions"].items()}
        pending.cells, pending.slots = dict(self.pending["cells"]), dict(self.pending["slots"])
        pending.calls = list(self.pending["calls"])

    def same_writes(self, other: Heap) -> bool:
        """Whether no write to outside is deferred."""
        return all(_equal(self.pending[name], other.pending[name]) for name in self.pending)

    def changed(self, other: Heap) -> list[int]:
        """Of the objects that both know, those with another content."""
        return [key for key in self.objects
                if key in other.contents and not _equal(self.contents[key], other.contents[key])]


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return False


def _content(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, (list, collections.deque)):
        return list(value)
    if isinstance(value, set):
        return tuple(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, types.CellType):
        try:
            return (value.cell_contents,)
        except ValueError:
            return (ABSENT,)
    return None


def fill(value: Any, content: Any) -> None:
    if isinstance(value, (list, dict, set, collections.deque)):
        if isinstance(value, dict) and type(value) is not dict:
            if dict(dict.items(value)) != content:
                value.clear()
                value.update(content)
            return
        value.clear()
        if content:
            value.extend(content) if isinstance(value, (list, collections.deque)) else value.update(content)
    elif isinstance(value, types.CellType):
        if content[0] is ABSENT:
            if _content(value)[0] is not ABSENT:
                del value.cell_contents
        else:
            value.cell_contents = content[0]


def clone(value: Any, world: World) -> Any:
    """An iterator at the same position, which advances independently."""
    if isinstance(value, Generator):
        other = Generator(value.frame.copy())
        other.frame.index = value.frame.index
        other.frame.stack = [clone(item, world) for item in other.frame.stack]
        other.started, other.ended = value.started, value.ended
        return world.new(other)
    if type(value) not in known.ITERATORS:
        return value
    try:
        build, args, *state = value.__reduce__()
    except TypeError:
        raise Decline(f"it branches on a tensor while a {type(value).__name__} is in use") from None
    made = world.new(build(*[clone(a, world) for a in args]))
    if state:
        made.__setstate__(state[0])
    return made


def same_place(a: Any, b: Any) -> bool:
    """Whether two iterators that come from one are still at the same place."""
    if isinstance(a, Generator):
        return isinstance(b, Generator) and a.frame.index == b.frame.index and _equal(a.frame.locals, b.frame.locals)
    if type(a) is not type(b) or type(a) not in known.ITERATORS:
        return False
    left, right = a.__reduce__(), b.__reduce__()
    return len(left) == len(right) and left[0] is right[0] and left[2:] == right[2:] and len(left[1]) == len(right[1]) and all(
        x is y or same_place(x, y) or (type(x) in (int, range, str, bytes) and type(x) is type(y) and x == y) for x, y in zip(left[1], right[1]))
