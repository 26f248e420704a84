"""Initialisers that draw at random. All follow ``oar.seed``."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar.framework.parameter import dtype_name
from oar.nn.initializer.initializer import Initializer, calculate_gain, compute_fans

__all__ = [
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
]

_HALF = ("float16", "bfloat16")


def _draw_dtype(dtype: Any) -> Any:
    """Half-precision values are drawn in float32 and rounded once."""
    return "float32" if dtype_name(dtype) in _HALF else dtype


def _rounded(values: Tensor, dtype: Any) -> Tensor:
    return values if dtype_name(values.dtype) == dtype_name(dtype) else values.astype(dtype)


def _program_seed() -> int:
    """As in Paddle, a seed of the default program fixes what layers begin with in eager mode, too. 0 is the global stream."""
    programs = sys.modules.get("oar.static.program")
    return programs.default_main_program().random_seed if programs is not None and in_dynamic_mode() else 0


def _uniform(shape: Sequence[int], dtype: Any, low: float, high: float, seed: int = 0) -> Tensor:
    # The op rounds to bfloat16 itself. As in Paddle, only float16 is a cast of its own in a program.
    wide = "float32" if dtype_name(dtype) == "float16" else dtype
    return _rounded(oar.uniform(list(shape), dtype=wide, min=low, max=high, seed=seed or _program_seed()), dtype)


def _normal(shape: Sequence[int], dtype: Any, mean: float, std: float) -> Tensor:
    return _rounded(ops.gaussian(list(shape), mean, std, _program_seed(), _draw_dtype(dtype)), dtype)


def _complex_normal(shape: Sequence[int], dtype: Any, mean: float, std: float, seed: int = 0) -> Tensor:
    """Both parts have this mean and half of the variance."""
    part = "float32" if dtype_name(dtype) == "complex64" else "float64"
    both = ops.gaussian([*shape, 2], mean, std / math.sqrt(2.0), seed, part)
    return oar.as_complex(both)


class Uniform(Initializer):
    """Values between ``low`` and ``high``, all equally likely.

    Args:
        low: the smallest value.
        high: the largest value.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = nn.Linear(4, 4, weight_attr=nn.initializer.Uniform(-0.1, 0.1)).weight
        >>> bool((w.abs() <= 0.1).all())
        True
    """

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None) -> None:
        if not high >= low:
            raise AssertionError(f"high should be at least low, but low={low} and high={high}.")
        self._low, self._high = float(low), float(high)

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _uniform(shape, dtype, self._low, self._high)


class Normal(Initializer):
    """Values from a normal distribution.

    Args:
        mean: the mean; for complex parameters that of both parts, also as a complex number of equal parts.
        std: the standard deviation.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Linear(2, 1, weight_attr=nn.initializer.Normal(mean=3.0, std=0.0)).weight.tolist()
        [[3.0], [3.0]]
    """

    def __init__(self, mean: complex = 0.0, std: float = 1.0, name: str | None = None) -> None:
        if isinstance(mean, complex):
            if mean.real != mean.imag:
                raise ValueError("if mean is a complex number, its real part should equal its imaginary part, but "
                                 f"received {mean}.")
            mean = mean.real
        self._mean, self._std = float(mean), float(std)

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return self._drawn(shape, dtype, _program_seed())

    def _drawn(self, shape: Sequence[int], dtype: Any, seed: int) -> Tensor:
        if dtype_name(dtype).startswith("complex"):
            return _complex_normal(shape, dtype, self._mean, self._std, seed)
        return ops.gaussian(list(shape), self._mean, self._std, seed, dtype)  # rounds 16-bit values once


class TruncatedNormal(Initializer):
    """Values from a normal distribution, cut off at ``a`` and ``b`` standard deviations from the mean.

    Args:
        mean: the mean.
        std: the standard deviation.
        a: the lower cut, in standard deviations.
        b: the upper cut, in standard deviations.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = nn.Linear(8, 8, weight_attr=nn.initializer.TruncatedNormal(std=0.5)).weight
        >>> bool((w.abs() <= 1.0).all())
        True
    """

    def __init__(
        self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None
    ) -> None:
        if not a < b:
            raise ValueError(f"a should be below b, but a={a} and b={b}.")
        self._mean, self._std, self._a, self._b = float(mean), float(std), float(a), float(b)

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        drawn = ops.truncated_normal(
            list(shape), self._mean, self._std, self._a, self._b, _draw_dtype(dtype)
        )
        return _rounded(drawn, dtype)


class _Xavier(Initializer):
    def __init__(
        self,
        fan_in: float | None = None,
        fan_out: float | None = None,
        gain: float = 1.0,
        name: str | None = None,
    ) -> None:
        self._fan_in, self._fan_out, self._gain = fan_in, fan_out, gain

    def _std(self, shape: Sequence[int]) -> float:
        own_in, own_out = compute_fans(shape)
        fan_in = own_in if self._fan_in is None else self._fan_in
        fan_out = own_out if self._fan_out is None else self._fan_out
        return self._gain * math.sqrt(2.0 / max(fan_in + fan_out, 1e-12))


class XavierUniform(_Xavier):
    """Uniform in ``±gain * sqrt(6 / (fan_in + fan_out))``, after Glorot and Bengio.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = nn.Linear(3, 3, weight_attr=nn.initializer.XavierUniform()).weight
        >>> bool((w.abs() <= 1.0).all())
        True
    """

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        limit = math.sqrt(3.0) * self._std(shape)
        return _uniform(shape, dtype, -limit, limit)


class XavierNormal(_Xavier):
    """Normal with deviation ``gain * sqrt(2 / (fan_in + fan_out))``, after Glorot and Bengio.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Linear(3, 3, weight_attr=nn.initializer.XavierNormal()).weight.shape
        [3, 3]
    """

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _normal(shape, dtype, 0.0, self._std(shape))


class _Kaiming(Initializer):
    def __init__(
        self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu", mode: str = "fan_in"
    ) -> None:
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"mode is {mode!r}; 'fan_in' and 'fan_out' are possible.")
        self._fan_in, self._negative_slope, self._nonlinearity = fan_in, negative_slope, nonlinearity
        self._fan = ("fan_in", "fan_out").index(mode)

    def _std(self, shape: Sequence[int]) -> float:
        fan_in = compute_fans(shape)[self._fan] if self._fan_in is None else self._fan_in
        return calculate_gain(self._nonlinearity, self._negative_slope) / math.sqrt(max(fan_in, 1e-12))


class KaimingUniform(_Kaiming):
    """Uniform in ``±gain * sqrt(3 / fan_in)``, after He et al.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Linear(3, 3, weight_attr=nn.initializer.KaimingUniform()).weight.shape
        [3, 3]
    """

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        limit = math.sqrt(3.0) * self._std(shape)
        return _uniform(shape, dtype, -limit, limit)


class KaimingNormal(_Kaiming):
    """Normal with deviation ``gain / sqrt(fan_in)``, after He et al.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Conv2D(3, 8, 3, weight_attr=nn.initializer.KaimingNormal()).weight.shape
        [8, 3, 3, 3]
    """

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return _normal(shape, dtype, 0.0, self._std(shape))
