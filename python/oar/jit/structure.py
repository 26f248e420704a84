"""Arguments of any nesting: which tensors they hold, and what else they are."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor

__all__ = ["Same", "flatten", "is_array", "plain_structure", "rebuild"]

CONSTANTS = frozenset({int, str, bool, bytes, type(None), type(Ellipsis)})
_TENSOR = "tensor"
_AGAIN = "again"


class Same:
    """An object as a part of a key: equal to itself only."""

    __slots__ = ("object",)

    def __init__(self, of: Any) -> None:
        self.object = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)

    def __repr__(self) -> str:
        return f"{type(self.object).__name__} object"


def is_array(value: Any) -> bool:
    """Whether it is a NumPy array, without importing NumPy for the question."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def _is_container(value: Any) -> bool:
    kind = type(value)
    return kind in (list, tuple, dict, collections.OrderedDict) or (isinstance(value, tuple) and hasattr(kind, "_make"))


def flatten(value: Any, tensors: list[Tensor], seen: dict[int, int]) -> Any:
    """Appends the tensors in a value, arrays among them, and returns a key for all the rest.

    What is met twice is told by its place in ``seen``: a function may ask whether two arguments are the same.
    """
    kind = type(value)
    if kind in CONSTANTS:
        return (kind, value)
    if kind is float or kind is complex:
        return (kind, repr(value))  # 0.0 is not -0.0, and nan is nan
    if kind is not Tensor and not isinstance(value, Tensor) and not _is_container(value):
        return _key_of(value, kind, tensors)
    if id(value) in seen:
        return (_AGAIN, seen[id(value)])
    seen[id(value)] = len(seen)
    if kind is Tensor or isinstance(value, Tensor):
        tensors.append(value)
        return _TENSOR if kind is Tensor else (_TENSOR, kind)
    if isinstance(value, dict):
        items = [flatten(item, tensors, seen) for item in value.values()]
        return (kind, *[(flatten(key, tensors, seen), item) for key, item in zip(value, items)])
    return (kind, *[flatten(item, tensors, seen) for item in value])


_PLAIN: dict[int, Any] = {}  # by number of tensors


def plain_structure(args: tuple) -> Any:
    """What ``flatten`` returns for tensors alone, each another one; None for other arguments. The usual call is fast."""
    count = len(args)
    for arg in args:
        if type(arg) is not Tensor:
            return None
    if count > 1 and len({id(arg) for arg in args}) != count:
        return None
    if count not in _PLAIN:
        _PLAIN[count] = (tuple, *[_TENSOR] * count)
    return _PLAIN[count]


def _key_of(value: Any, kind: type, tensors: list[Tensor]) -> Any:
    if kind is slice:
        return (kind, *[flatten(v, [], {}) for v in (value.start, value.stop, value.step)])
    if is_array(value):
        tensors.append(_C.make_tensor(value, None))
        return "array"
    if kind.__module__ == "numpy" and hasattr(value, "tobytes"):
        return (kind, value.tobytes())
    return Same(value)


def rebuild(value: Any, take: Callable[[], Any], note: Callable[[Any], Any]) -> Any:
    """The same structure with other tensors, in the order in which ``flatten`` met them; ``note`` sees each container."""
    made: dict[int, Any] = {}

    def build(value: Any) -> Any:
        if is_array(value):
            return take()
        if not isinstance(value, Tensor) and not _is_container(value):
            return value
        if id(value) not in made:
            if isinstance(value, Tensor):
                new = take()
            elif isinstance(value, dict):
                new = note(type(value)((key, build(item)) for key, item in value.items()))
            else:
                items = [build(item) for item in value]
                new = note(type(value)._make(items) if hasattr(type(value), "_make") else type(value)(items))
            made[id(value)] = new
        return made[id(value)]

    return build(value)
