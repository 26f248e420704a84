"""Initialisers under the names of older programs, with a seed of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.nn.initializer.fixed_init import Assign, Constant
from oar.nn.initializer.random_init import (
    Normal,
    TruncatedNormal,
    Uniform,
    _draw_dtype,
    _Kaiming,
    _rounded,
    _uniform,
    _Xavier,
)

__all__ = [
    "ConstantInitializer",
    "MSRAInitializer",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormalInitializer",
    "UniformInitializer",
    "XavierInitializer",
]


def _normal(shape: Sequence[int], dtype: Any, mean: float, std: float, seed: int) -> Tensor:
    return _rounded(ops.gaussian(list(shape), mean, std, seed, _draw_dtype(dtype)), dtype)


class ConstantInitializer(Constant):
    """``Constant`` under its older name.

    Args:
        value: the value.
        force_cpu: accepted for compatibility.
    """

    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        super().__init__(value)


class NumpyArrayInitializer(Assign):
    """``Assign`` under its older name."""


class UniformInitializer(Uniform):
    """``Uniform`` with a seed, and with one value on places of the diagonal.

    Args:
        low: the smallest value.
        high: the largest value.
        seed: a seed for this initialiser; 0 follows ``oar.seed``.
        diag_num: how many places get ``diag_val``: i * diag_step + i in row-major order, for each i below it.
        diag_step: the distance of these places, less 1.
        diag_val: their value.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> first = nn.initializer.UniformInitializer(0.0, 0.5, diag_num=2, diag_step=2, diag_val=3.0)
        >>> nn.Linear(2, 2, weight_attr=first).weight.diagonal().tolist()
        [3.0, 3.0]
    """

    def __init__(
        self, low: float = -1.0, high: float = 1.0, seed: int = 0, diag_num: int = 0, diag_step: int = 0,
        diag_val: float = 1.0,
    ) -> None:
        super().__init__(low, high)
        self._seed, self._places, self._value = seed, [i * (diag_step + 1) for i in range(diag_num)], diag_val

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        drawn = _uniform(shape, dtype, self._low, self._high, self._seed)
        if not self._places:
            return drawn
        if oar.in_dynamic_mode() and self._places[-1] >= drawn.size:  # a run of a program says so itself
            raise ValueError(
                f"[UniformInitializer] diag_num is {len(self._places)}, but place {self._places[-1]} is not in a parameter "
                f"of {drawn.size} elements."
            )
        places = oar.to_tensor(self._places, "int64")
        values = ops.full([len(self._places)], self._value, drawn.dtype)
        return oar.scatter(drawn.flatten(), places, values).reshape(list(shape))


class NormalInitializer(Normal):
    """``Normal`` with a seed.

    Args:
        loc: the mean.
        scale: the standard deviation.
        seed: a seed for this initialiser; 0 follows ``oar.seed``.
    """

    def __init__(self, loc: complex = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__(loc, scale)
        self._seed = seed

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return self._drawn(shape, dtype, self._seed) if self._seed else super().sample(shape, dtype)


class TruncatedNormalInitializer(TruncatedNormal):
    """``TruncatedNormal`` under its older name.

    Args:
        loc: the mean.
        scale: the standard deviation.
        seed: accepted for compatibility; ``oar.seed`` decides.
        a: the smallest value.
        b: the largest value.
    """

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(loc, scale, a, b)


class XavierInitializer(_Xavier):
    """``XavierUniform`` or ``XavierNormal``, with a seed.

    Args:
        uniform: whether all values are equally likely; else they are normal.
        fan_in: the number of inputs; by default that of the parameter's shape.
        fan_out: the number of outputs; by default that of the parameter's shape.
        seed: a seed for this initialiser; 0 follows ``oar.seed``.
        gain: a factor.
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0,
        gain: float = 1.0,
    ) -> None:
        super().__init__(fan_in, fan_out, gain)
        self._uniform, self._seed = uniform, seed

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _spread(shape, dtype, self._std(shape), self._uniform, self._seed)


class MSRAInitializer(_Kaiming):
    """``KaimingUniform`` or ``KaimingNormal``, with a seed.

    Args:
        uniform: whether all values are equally likely; else they are normal.
        fan_in: the number of inputs; by default that of the parameter's shape.
        seed: a seed for this initialiser; 0 follows ``oar.seed``.
        negative_slope: the slope of ``leaky_relu``.
        nonlinearity: the function that follows.
        mode: which number counts, 'fan_in' or 'fan_out'.
    """

    def __init__(
        self, uniform: bool = True, fan_in: float | None = None, seed: int = 0, negative_slope: float = 0.0,
        nonlinearity: str = "relu", mode: str = "fan_in",
    ) -> None:
        super().__init__(fan_in, negative_slope, nonlinearity, mode)
        self._uniform, self._seed = uniform, seed

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _spread(shape, dtype, self._std(shape), self._uniform, self._seed)


def _spread(shape: Sequence[int], dtype: Any, std: float, uniform: bool, seed: int) -> Tensor:
    """Values around 0 with this standard deviation."""
    limit = std * 3**0.5
    return _uniform(shape, dtype, -limit, limit, seed) if uniform else _normal(shape, dtype, 0.0, std, seed)
