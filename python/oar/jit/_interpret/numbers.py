"""Python numbers that depend on tensors: they are kept as tensors of one value and behave as the numbers would."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret.operators import Operators
from oar.jit._interpret.world import Decline

__all__ = ["Numbers"]

_DTYPES: dict[Any, str] = {bool: "bool", int: "int64", float: "float64"}
_ARITHMETIC = frozenset({"+", "-", "*"})
# Python's integers have no end. Those that a program computes are exact as 64-bit numbers, and as floats, within this.
_LARGEST = 2**53
_SMALL = 2**20  # added in every round of a loop, it stays within the largest


class Numbers(Operators):
    """Numbers that depend on tensors, as a part of the interpreter."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: dict[int, tuple[Tensor, type]] = {}
        self.raised: list[Tensor] = []  # conditions under which the region that is interpreted has raised

    def kind_of(self, value: Any) -> type | None:
        """bool, int or float for a number; None for everything else, plain tensors among it."""
        if type(value) in _DTYPES:
            return type(value)
        tag = self._tags.get(id(value))
        return tag[1] if tag is not None else None

    def is_tagged(self, value: Any) -> bool:
        return id(value) in self._tags

    def tagged(self, tensor: Tensor, kind: type | None) -> Tensor:
        """The tensor as a number of this kind."""
        if kind is not None:
            self._tags[id(tensor)] = (tensor, kind)
            self.world.numbers[id(tensor)] = kind
        return tensor

    def as_tensor(self, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if type(value) in _DTYPES:
            if type(value) is int and abs(value) > _LARGEST:
                raise Decline("a large integer depends on the value of a tensor")
            return _C.ops.assign(_C.make_tensor(value, _DTYPES[type(value)]))
        raise Decline(f"a {type(value).__name__} depends on the value of a tensor")

    # operators ---------------------------------------------------------------------------------------------

    def _like(self, number: Any, partner: Tensor) -> Tensor:
        """A number combined with a tensor takes the tensor's dtype, as a literal does."""
        kind, dtype = self.kind_of(number), partner.dtype.name
        if kind is int and dtype != "bool" or kind is float and dtype in ("float32", "float64", "float16", "bfloat16"):
            return _C.ops.cast(number, dtype)
        raise Decline("a number that depends on a tensor is combined with a tensor of another type")

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        if not self._tags or not (self.is_tagged(a) or self.is_tagged(b)):
            return super().binary(symbol, a, b)
        kinds = self.kind_of(a), self.kind_of(b)
        if None not in kinds:
            if symbol not in _ARITHMETIC or bool in kinds:
                raise Decline(f"it computes {symbol} of numbers that depend on tensors")
            kind = float if float in kinds else int
            left, right = (_C.ops.cast(self.as_tensor(v), _DTYPES[kind]) for v in (a, b))
            made = self.tagged(super().binary(symbol, left, right), kind)
            if kind is int and (symbol == "*" or not any(type(v) is int and abs(v) < _SMALL for v in (a, b))):
                self._check_range(super().binary(symbol, _C.ops.cast(left, "float64"), _C.ops.cast(right, "float64")))
            return made
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            a = self._like(a, b) if self.is_tagged(a) else a
            b = self._like(b, a) if self.is_tagged(b) else b
            return super().binary(symbol, a, b)
        raise Decline("it computes with a number that depends on a tensor")

    def _check_range(self, exact: Tensor) -> None:
        """The program is for calls whose integers stay within the largest; Python does the others."""
        self.raised.append(_C.ops.greater_than(_C.ops.abs(exact), self.as_tensor(float(_LARGEST))))

    def inplace(self, symbol: str, a: Any, b: Any) -> Any:
        if self._tags and self.is_tagged(a):
            return self.binary(symbol, a, b)
        if self._tags and self.is_tagged(b) and isinstance(a, Tensor):
            return super().inplace(symbol, a, self._like(b, a))
        if self._tags and self.is_tagged(b):
            return self.binary(symbol, a, b)
        return super().inplace(symbol, a, b)

    def compare(self, symbol: str, a: Any, b: Any) -> Any:
        if not self._tags or not (self.is_tagged(a) or self.is_tagged(b)):
            return super().compare(symbol, a, b)
        kinds = self.kind_of(a), self.kind_of(b)
        if None not in kinds:
            kind = float if float in kinds else int
            left, right = (_C.ops.cast(self.as_tensor(v), _DTYPES[kind]) for v in (a, b))
            return self.tagged(super().compare(symbol, left, right), bool)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            a = self._like(a, b) if self.is_tagged(a) else a
            b = self._like(b, a) if self.is_tagged(b) else b
            return super().compare(symbol, a, b)
        raise Decline("it compares a number that depends on a tensor")

    def unary(self, name: str, value: Any) -> Any:
        if self._tags and self.is_tagged(value):
            if name == "UNARY_INVERT" or self.kind_of(value) is bool:
                raise Decline("it computes with a number that depends on a tensor")
            return self.tagged(super().unary(name, value), self.kind_of(value))
        return super().unary(name, value)

    def negation(self, value: Any) -> Any:
        if isinstance(value, Tensor) and _C.is_symbolic(value):
            return self.tagged(_C.ops.logical_not(self.as_condition(value)), bool)
        return not self.truth(value)

    def as_condition(self, value: Tensor) -> Tensor:
        raise NotImplementedError
