"""Outside changes of an interpreted function: they are deferred, and done after every run."""

from __future__ import annotations

import types
from typing import Any

from oar import _C

__all__ = ["ABSENT", "PendingWrites"]

ABSENT: Any = _C.Guards.ABSENT


class PendingWrites:
    """Outside changes that are deferred until the program has run."""

    def __init__(self) -> None:
        self.dicts: dict[int, tuple[dict, dict]] = {}  # by id: the dictionary, and what is written under its keys
        self.moved: dict[tuple[int, Any], bool] = {}  # keys that are removed first: their entries go to the end
        self.copies: dict[int, tuple[Any, Any]] = {}  # by id: a list or set, and the copy that takes its place
        self.additions: dict[int, tuple[Any, list]] = {}  # by id: a list or set, and calls that only add to it
        self.cells: dict[int, tuple[types.CellType, Any]] = {}
        self.slots: dict[tuple[int, int], tuple[Any, Any, Any]] = {}  # the object, its descriptor, the value
        self.calls: list[tuple[Any, tuple, dict]] = []  # functions to call, such as print

    def __bool__(self) -> bool:
        return bool(self.dicts or self.copies or self.additions or self.cells or self.slots or self.calls)

    def set_entry(self, mapping: dict, key: Any, value: Any) -> None:
        written = self.dicts.setdefault(id(mapping), (mapping, {}))[1]
        if written.get(key) is ABSENT:
            del written[key]
            self.moved[id(mapping), key] = True
        written[key] = value

    def delete_entry(self, mapping: dict, key: Any) -> None:
        written = self.dicts.setdefault(id(mapping), (mapping, {}))[1]
        written.pop(key, None)
        if dict.__contains__(mapping, key):
            written[key] = ABSENT
        elif not written:
            del self.dicts[id(mapping)]

    def touches(self, value: Any) -> bool:
        """Whether something in the object itself will be changed."""
        own = getattr(value, "__dict__", None)
        held = (self.dicts, self.copies, self.additions)
        return any(id(value) in one for one in held) or id(own) in self.dicts
