"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._parameters import check_nonnegative, sample_shape, to_tensors, to_value
from oar.distribution._sums import xlogy
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """The multinomial distribution: how often each category comes up in independent trials.

    Args:
        total_count: the number of trials, an integer of at least 1.
        probs: weights of the categories, along the last axis. They are divided by their sum.

    Examples:
        >>> import oar
        >>> from oar.distribution import Multinomial
        >>> multinomial = Multinomial(4, oar.to_tensor([1.0, 3.0]))
        >>> multinomial.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 3.])
        >>> multinomial.prob(oar.to_tensor([1.0, 3.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.42187500)
    """

    probs: Tensor  # type: ignore[assignment]

    def __init__(self, total_count: int, probs: Parameter) -> None:
        if not isinstance(total_count, int) or total_count < 1:
            raise ValueError(f"[Multinomial] total_count must be an int of at least 1, but got {total_count!r}.")
        check_nonnegative("Multinomial", probs=probs)
        (probs,) = to_tensors("Multinomial", probs=probs)
        if probs.ndim == 0:
            raise ValueError("[Multinomial] probs are 0-d; they need an axis of categories.")
        self.probs = probs / probs.sum(-1, keepdim=True)
        self.total_count = total_count
        super().__init__(probs.shape[:-1], probs.shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean number of each category."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variance of the number of each category."""
        return self.total_count * self.probs * (1 - self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.probs)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + xlogy(value, self.probs).sum(-1)

    def sample(self, shape: SampleShape = ()) -> Tensor:
        """Draw counts, which add up to ``total_count`` along the last axis.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape, then an axis of categories.

        Returns:
            a tensor.
        """
        size = self._extend_shape(sample_shape(shape))
        with oar.no_grad():
            # Category by category: of the trials that are left, each falls on this one with its share of what is left.
            left = oar.full(size[:-1], self.total_count, "int64")
            drawn = []
            for probs, rest in zip(oar.unstack(self.probs, -1), oar.unstack(_sums_from_here(self.probs), -1)):
                share = oar.where(rest > 0, probs / rest, oar.ones_like(rest)).clip(0, 1)
                drawn.append(ops.binomial(left, oar.broadcast_to(share, size[:-1])))
                left = left - drawn[-1]
            return oar.stack(drawn, -1).astype(self.probs.dtype)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = oar.arange(1, n + 1, dtype=self.probs.dtype).reshape([-1] + [1] * self.probs.ndim)
        ways = math.lgamma(n + 1) - (counts + 1).lgamma() - (n - counts + 1).lgamma()
        chance = (ways + xlogy(counts, self.probs) + xlogy(n - counts, 1 - self.probs)).exp()
        spread = (chance * (counts + 1).lgamma()).sum([0, -1])
        return -n * xlogy(self.probs, self.probs).sum(-1) - math.lgamma(n + 1) + spread


def _sums_from_here(probs: Tensor) -> Tensor:
    """The sum of each element and all that follow it."""
    return oar.flip(oar.cumsum(oar.flip(probs, [-1]), -1), [-1])
