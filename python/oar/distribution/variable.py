"""Random variables: where a transform takes its values from, and where it takes them to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar.distribution import constraint as constraints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor

__all__ = ["Independent", "Positive", "Real", "Stack", "Variable", "positive", "real"]


class Variable:
    """A random variable.

    Args:
        is_discrete: whether its values are discrete.
        event_rank: the number of axes of one value.
        constraint: a test of which values it can have.
    """

    def __init__(self, is_discrete: bool = False, event_rank: int = 0,
                 constraint: constraints.Constraint | None = None) -> None:  # fmt: skip
        self._is_discrete = is_discrete
        self._event_rank = event_rank
        self._constraint = constraint

    @property
    def is_discrete(self) -> bool:
        """Whether the values are discrete."""
        return self._is_discrete

    @property
    def event_rank(self) -> int:
        """The number of axes of one value."""
        return self._event_rank

    def constraint(self, value: Tensor) -> Tensor:
        """Which elements of ``value`` the variable can have."""
        if self._constraint is None:
            raise AssertionError("the variable has no constraint. Pass one: Variable(constraint=...).")
        return self._constraint(value)


class Real(Variable):
    """A variable of all numbers."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.real)


class Positive(Variable):
    """A variable of numbers that are not negative."""

    def __init__(self, event_rank: int = 0) -> None:
        super().__init__(False, event_rank, constraints.positive)


class Independent(Variable):
    """A variable whose last batch axes count as axes of its values.

    Args:
        base: the variable.
        reinterpreted_batch_rank: the number of such axes.
    """

    def __init__(self, base: Variable, reinterpreted_batch_rank: int) -> None:
        self._base = base
        self._reinterpreted_batch_rank = reinterpreted_batch_rank
        super().__init__(base.is_discrete, base.event_rank + reinterpreted_batch_rank)

    def constraint(self, value: Tensor) -> Tensor:
        """Which values are valid in all of their elements."""
        rank = self._reinterpreted_batch_rank
        if value.ndim < rank:
            raise ValueError(f"a value of {value.ndim} axes was given, but the variable has {rank} axes of its own.")
        return self._base.constraint(value).all(list(range(-rank, 0)))


class Stack(Variable):
    """Variables side by side along an axis.

    Args:
        vars: the variables.
        axis: the axis.
    """

    def __init__(self, vars: Sequence[Variable], axis: int = 0) -> None:
        self._vars = vars
        self._axis = axis
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        """Whether the values of any of the variables are discrete."""
        return any(var.is_discrete for var in self._vars)

    @property
    def event_rank(self) -> int:
        """The number of axes of one value: the largest of the variables, and one more if the axis is inside of it."""
        rank = max(var.event_rank for var in self._vars)
        return rank + 1 if self._axis + rank < 0 else rank

    def constraint(self, value: Tensor) -> Tensor:
        """Which elements are valid for their variable."""
        if not -value.ndim <= self._axis < value.ndim:
            raise ValueError(f"a value of {value.ndim} axes was given, but the variables are stacked along axis {self._axis}.")
        parts = [var.constraint(part) for var, part in zip(self._vars, oar.unstack(value, self._axis))]
        return oar.stack(parts, self._axis)


real = Real()
positive = Positive()
