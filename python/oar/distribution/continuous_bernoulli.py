"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar.distribution._limits import epsilon
from oar.distribution._parameters import check_probability, to_tensors, to_value, within
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Distribution):
    """The continuous Bernoulli distribution: a density in proportion to ``probs ** x * (1 - probs) ** (1 - x)`` on [0, 1].

    Args:
        probs: the parameter, between 0 and 1. A number stands for a tensor of shape [1], as in Paddle.
        lims: between these two values of ``probs``, formulas that cancel around 0.5 are replaced by series.

    Examples:
        >>> import oar
        >>> from oar.distribution import ContinuousBernoulli
        >>> continuous = ContinuousBernoulli(oar.to_tensor([0.2, 0.5]))
        >>> continuous.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.38801414, 0.50000000])
        >>> continuous.prob(oar.to_tensor(0.5))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.92419618, 1.        ])
    """

    probs: Tensor  # type: ignore[assignment]

    def __init__(self, probs: Parameter, lims: Sequence[float] = (0.499, 0.501)) -> None:
        check_probability("ContinuousBernoulli", probs=probs)
        if len(lims) != 2:
            raise ValueError(f"[ContinuousBernoulli] lims must be two numbers, but got {lims}.")
        if isinstance(probs, (int, float)):
            probs = [probs]
        (probs,) = to_tensors("ContinuousBernoulli", probs=probs)
        self.dtype = probs.dtype
        self.lims = oar.to_tensor(lims, dtype=self.dtype)
        eps = epsilon(self.dtype)
        self.probs = probs.clip(eps, 1 - eps)
        self._even = (probs > lims[0]) & (probs < lims[1])
        # Any value outside of the limits: its result is not used, but its gradient must be finite.
        self._uneven_probs = oar.where(self._even, oar.full_like(self.probs, 0.25), self.probs)
        super().__init__(self.probs.shape)

    def _choose(self, series: Tensor, formula: Tensor) -> Tensor:
        return oar.where(self._even, series, formula)

    def _log_constant(self) -> Tensor:
        """The logarithm of the factor that gives the density a total of 1."""
        away = self.probs - 0.5
        series = math.log(2) + (4 / 3 + 104 / 45 * away.square()) * away.square()
        lean = 1 - 2 * self._uneven_probs
        return self._choose(series, (2 * lean.atanh() / lean).log())

    @property
    def mean(self) -> Tensor:
        """The mean."""
        away = self.probs - 0.5
        lean = 1 - 2 * self._uneven_probs
        formula = 0.5 / lean.atanh() - self._uneven_probs / lean
        return self._choose(0.5 + (1 / 3 + 16 / 45 * away.square()) * away, formula)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        away = self.probs - 0.5
        lean = 1 - 2 * self._uneven_probs
        formula = (0.5 / lean.atanh()).square() - self._uneven_probs * (1 - self._uneven_probs) / lean.square()
        return self._choose(1 / 12 - (1 / 15 - 128 / 945 * away.square()) * away.square(), formula)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return self.icdf(oar.uniform(self._extend_shape(shape), self.dtype, 0.0, 1.0))

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.probs)
        density = value * self.probs.log() + (1 - value) * (-self.probs).log1p() + self._log_constant()
        return within((value >= 0) & (value <= 1), density)

    def entropy(self) -> Tensor:
        mean = self.mean
        return -(mean * self.probs.log() + (1 - mean) * (-self.probs).log1p() + self._log_constant())

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        value = to_value(value, self.probs).clip(0, 1)
        slope, steep = self.probs.logit(), self._uneven_probs.logit()
        bend = value * (value - 1) / 2
        series = value + slope * bend * (1 + slope * (2 * value - 1) / 6)
        return self._choose(series, (steep * value).expm1() / steep.expm1())

    def icdf(self, value: Tensor) -> Tensor:
        """The number whose ``cdf`` is ``value``.

        Args:
            value: probabilities.

        Returns:
            a tensor.
        """
        value = to_value(value, self.probs)
        slope, steep = self.probs.logit(), self._uneven_probs.logit()
        bend = value * (1 - value) / 2
        series = value + slope * bend * (1 + slope * (1 - 2 * value) / 3)
        return self._choose(series, (value * steep.expm1()).log1p() / steep)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(ContinuousBernoulli, other)
        mean = self.mean
        slopes = self.probs.logit() - other.probs.logit()
        levels = (-self.probs).log1p() - (-other.probs).log1p()
        return mean * slopes + levels + self._log_constant() - other._log_constant()
