"""Arguments and results of any nesting: which tensors they hold, and what else they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._lazy import np

__all__ = ["Same", "flatten", "is_array", "rebuild", "template_of"]

CONSTANTS = (int, float, str, bool, complex, bytes, type(None))
_TENSOR = "tensor"


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
    return type(value).__module__ == "numpy" and isinstance(value, np.ndarray)


def flatten(value: Any, tensors: list[Tensor]) -> Any:
    """Appends the tensors in a value, arrays among them, and answers a key for all the rest."""
    kind = type(value)
    if kind is Tensor or isinstance(value, Tensor):
        tensors.append(value)
        return _TENSOR
    if kind in (tuple, list):
        return (kind, *[flatten(item, tensors) for item in value])
    if kind in CONSTANTS:
        return (kind, repr(value) if value != value else value)
    if isinstance(value, dict):
        keys = [flatten(item, tensors) for item in value.values()]
        return (kind, *zip((key if isinstance(key, CONSTANTS) else Same(key) for key in value), keys))
    if isinstance(value, (tuple, list)):  # named tuples and other subclasses
        return (kind, *[flatten(item, tensors) for item in value])
    if is_array(value):
        tensors.append(_C.make_tensor(value, None))
        return _TENSOR
    return Same(value)


def rebuild(value: Any, take: Callable[[], Any]) -> Any:
    """The same structure with other tensors, in the order in which ``flatten`` met them."""
    if isinstance(value, Tensor) or is_array(value):
        return take()
    if isinstance(value, dict):
        made = {key: rebuild(item, take) for key, item in value.items()}
        return made if type(value) is dict else _like_dict(value, made)
    if isinstance(value, (tuple, list)):
        items = [rebuild(item, take) for item in value]
        return _like_sequence(value, items)
    return value


def _like_sequence(value: Any, items: list[Any]) -> Any:
    kind = type(value)
    if kind in (tuple, list):
        return kind(items)
    if hasattr(kind, "_make"):
        return kind._make(items)
    return kind(items)


def _like_dict(value: dict, made: dict) -> Any:
    copy = value.copy()
    copy.update(made)
    return copy


class _Slot:
    """The place of a tensor in a result: the program's output or one of the caller's own tensors."""

    __slots__ = ("argument", "index")

    def __init__(self, index: int, argument: bool) -> None:
        self.index, self.argument = index, argument


def template_of(result: Any, inputs: list[Tensor]) -> tuple[list[Tensor], Callable[[list, list], Any]]:
    """The tensors of a result, and a function that makes the result of them and of the inputs anew.

    An input that is returned as it came is the caller's own tensor again, as in eager mode.
    """
    outputs: list[Tensor] = []
    places = {id(tensor): i for i, tensor in enumerate(inputs)}
    seen: dict[int, int] = {}

    def slot(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) in places:
                return _Slot(places[id(value)], True)
            if id(value) not in seen:
                seen[id(value)] = len(outputs)
                outputs.append(value)
            return _Slot(seen[id(value)], False)
        if isinstance(value, _C.Dim):
            raise NotImplementedError(f"the function returns a size ({value}) that is open.")
        if isinstance(value, dict):
            made = {key: slot(item) for key, item in value.items()}
            return made if type(value) is dict else _like_dict(value, made)
        if isinstance(value, (tuple, list)):
            return _like_sequence(value, [slot(item) for item in value])
        return value

    shape = slot(result)
    if isinstance(shape, _Slot) and not shape.argument:
        return outputs, lambda made, given: made[0]
    if type(shape) is tuple and all(
        isinstance(s, _Slot) and not s.argument and s.index == i for i, s in enumerate(shape)
    ):
        return outputs, lambda made, given: tuple(made)

    def fill(value: Any, made: list, given: list) -> Any:
        if isinstance(value, _Slot):
            return (given if value.argument else made)[value.index]
        if isinstance(value, dict):
            filled = {key: fill(item, made, given) for key, item in value.items()}
            return filled if type(value) is dict else _like_dict(value, filled)
        if isinstance(value, (tuple, list)):
            return _like_sequence(value, [fill(item, made, given) for item in value])
        return value

    return outputs, lambda made, given: fill(shape, made, given)
