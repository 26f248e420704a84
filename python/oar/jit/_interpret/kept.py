"""Tensors that a function keeps outside from call to call, ``self.mean = f(self.mean)``: inputs that it finds by itself."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

from oar._C import Tensor

__all__ = ["Keep", "KeptCell", "KeptEntry", "KeptSlot", "KeptTensor", "can_be_kept"]


class KeptEntry(NamedTuple):
    """An entry of a dictionary: an attribute, a global, an item."""

    mapping: dict
    key: Any

    @property
    def name(self) -> tuple:
        return id(self.mapping), self.key

    def read(self) -> Any:
        return dict.get(self.mapping, self.key)


class KeptCell(NamedTuple):
    """A variable of an enclosing function."""

    cell: types.CellType

    @property
    def name(self) -> tuple:
        return (id(self.cell),)

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return None


class KeptSlot(NamedTuple):
    """An attribute in a slot."""

    owner: Any
    descriptor: Any

    @property
    def name(self) -> tuple:
        return id(self.owner), id(self.descriptor), "slot"

    def read(self) -> Any:
        return getattr(self.owner, self.descriptor.__name__, None)


class Keep(BaseException):
    """The function changes tensors that it reads in these places: begin again, with what is there as inputs."""

    def __init__(self, places: list) -> None:
        super().__init__()
        self.places = places


class KeptTensor:
    """A place, and the kind of tensor that a program expects there."""

    def __init__(self, place: Any) -> None:
        self.place, self.first = place, place.read()
        self._kind = _kind(self.first)

    def read(self) -> Any:
        return self.place.read()

    def fits(self, value: Any) -> bool:
        return can_be_kept(value) and _kind(value) == self._kind


def can_be_kept(value: Any) -> bool:
    """A tensor with a history is left to Python: backward through the program would go into it in any case."""
    return type(value) is Tensor and (value.stop_gradient or value.is_leaf)


def _kind(value: Tensor) -> tuple:
    return value.dtype, tuple(value.shape), value.stop_gradient, str(value.place)
