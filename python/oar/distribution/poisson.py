"""The Poisson distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import check_nonnegative, to_tensors, to_value, within
from oar.distribution._sums import xlogy
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Poisson"]

# Up to this rate the entropy is a sum over all counts that matter; above it, its series for large rates is exact enough.
_LARGE_RATE = 64.0
_COUNTS = 200


class Poisson(Distribution):
    """The Poisson distribution: the number of events in a unit of time.

    Args:
        rate: the mean number of events. A number stands for a tensor of shape [1], as in Paddle.

    Examples:
        >>> import oar
        >>> from oar.distribution import Poisson
        >>> poisson = Poisson(oar.to_tensor([0.5, 3.0]))
        >>> poisson.prob(oar.to_tensor(2.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.07581633, 0.22404180])
        >>> poisson.entropy()
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.92763728, 1.93147027])
    """

    rate: Tensor

    def __init__(self, rate: Parameter) -> None:
        check_nonnegative("Poisson", rate=rate)
        (self.rate,) = to_tensors("Poisson", rate=[rate] if isinstance(rate, (int, float)) else rate)
        self.dtype = self.rate.dtype
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.rate

    def sample(self, shape: SampleShape = ()) -> Tensor:
        with oar.no_grad():
            return oar.poisson(oar.broadcast_to(self.rate, self._extend_shape(shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.rate)
        return within(value >= 0, xlogy(value, self.rate) - self.rate - (value + 1).lgamma())

    def entropy(self) -> Tensor:
        large = self.rate > _LARGE_RATE
        small = Poisson(oar.where(large, oar.ones_like(self.rate), self.rate))
        counts = oar.arange(_COUNTS, dtype=self.dtype).reshape([-1] + [1] * len(self._batch_shape))
        log_prob = small.log_prob(counts)
        log_prob = oar.where(log_prob > float("-inf"), log_prob, oar.zeros_like(log_prob))
        total = -oar.where(small.rate > 0, log_prob.exp() * log_prob, oar.zeros_like(log_prob)).sum(0)
        rate = oar.where(large, self.rate, oar.full_like(self.rate, _LARGE_RATE))
        part = 1 / rate
        series = 0.5 * (2 * math.pi * math.e * rate).log() - part * (1 / 12 + part * (1 / 24 + part * (19 / 360 + part * 9 / 80)))
        return oar.where(large, series, total)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Poisson, other)
        return xlogy(self.rate, self.rate) - xlogy(self.rate, other.rate) - self.rate + other.rate
