"""Tests of which values a variable can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oar._C import Tensor

__all__ = ["Constraint", "Positive", "Range", "Real", "Simplex", "positive", "real", "simplex"]


class Constraint:
    """The base of constraints. Calling one with a tensor tells which elements satisfy it."""

    def __call__(self, value: Tensor) -> Tensor:
        """Which elements of ``value`` satisfy the constraint, as a tensor of bools."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it tests.")

    def check(self, value: Tensor) -> Tensor:
        """The same as calling the constraint."""
        return self(value)


class Real(Constraint):
    """All numbers; NaN is none."""

    def __call__(self, value: Tensor) -> Tensor:
        return value == value


class Range(Constraint):
    """Numbers from ``lower`` to ``upper``, both included."""

    def __init__(self, lower: float | Tensor, upper: float | Tensor) -> None:
        self._lower = lower
        self._upper = upper

    def __call__(self, value: Tensor) -> Tensor:
        return (value >= self._lower) & (value <= self._upper)


class Positive(Constraint):
    """Numbers that are not negative."""

    def __call__(self, value: Tensor) -> Tensor:
        return value >= 0.0


class Simplex(Constraint):
    """Vectors along the last axis whose elements are not negative and add up to 1."""

    def __call__(self, value: Tensor) -> Tensor:
        if value.ndim == 0:
            return (value >= 0) & ((value - 1).abs() < 1e-6)
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


real = Real()
positive = Positive()
simplex = Simplex()
