"""Arguments of any nesting, built again around other tensors."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from oar._C import Tensor

__all__ = ["is_array", "is_container", "items_of", "rebuild"]


def is_array(value: Any) -> bool:
    """Whether it is a NumPy array, without importing NumPy for the question."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_container(value: Any) -> bool:
    """Whether tensors in it are separate arguments; other objects are compared by identity."""
    kind = type(value)
    return kind in (list, tuple, dict, collections.OrderedDict) or (isinstance(value, tuple) and hasattr(kind, "_make"))


def items_of(value: Any) -> list[tuple[Any, Any]]:
    """What a container holds, with keys or numbers; nothing for other values."""
    if not is_container(value):
        return []
    return list(value.items() if isinstance(value, dict) else enumerate(value))


def rebuild(value: Any, take: Callable[[], Any], note: Callable[[Any], Any]) -> Any:
    """The same structure with other tensors, in the order of ``_C.call_key``; ``note`` sees each container."""
    made: dict[int, Any] = {}

    def build(value: Any) -> Any:
        if is_array(value):
            return take()
        if not isinstance(value, Tensor) and not is_container(value):
            return value
        if id(value) not in made:
            if isinstance(value, Tensor):
                new = take()
            elif isinstance(value, dict):
                new = note(type(value)((key, build(item)) for key, item in value.items()))
            elif type(value) is list:
                new = made[id(value)] = note([])  # before its items: it may be one of them
                new.extend([build(item) for item in value])
            else:
                items = [build(item) for item in value]
                new = note(type(value)._make(items) if hasattr(type(value), "_make") else type(value)(items))
            made[id(value)] = new
        return made[id(value)]

    return build(value)
