"""The binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.distribution._parameters import (
    broadcast, check, check_nonnegative, check_probability, to_tensor, to_tensors, to_value, within)
from oar.distribution._sums import xlogy
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Binomial"]


class Binomial(Distribution):
    """The binomial distribution: the number of successes in independent trials.

    Args:
        total_count: the number of trials.
        probs: the probability of success.

    Examples:
        >>> import oar
        >>> from oar.distribution import Binomial
        >>> binomial = Binomial(4, oar.to_tensor([0.25, 0.5]))
        >>> binomial.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
        >>> binomial.prob(oar.to_tensor(2.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.21093750, 0.37500000])
    """

    total_count: Tensor
    probs: Tensor  # type: ignore[assignment]

    def __init__(self, total_count: Parameter, probs: Parameter) -> None:
        check_nonnegative("Binomial", total_count=total_count)
        check("Binomial", "total_count", total_count, lambda array: array == np.floor(array), "an integer")
        check_probability("Binomial", probs=probs)
        (probs,) = to_tensors("Binomial", probs=probs)
        self.dtype = probs.dtype
        count = to_tensor("Binomial", "total_count", total_count, self.dtype.name)
        self.total_count, self.probs = broadcast("Binomial", count, probs)
        # The largest number of trials, if Python knows it: what enumerates all outcomes then reads no tensor.
        self._most = None if isinstance(total_count, Tensor) else int(np.max(np.asarray(total_count), initial=0))
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, shape: SampleShape = ()) -> Tensor:
        size = self._extend_shape(shape)
        with oar.no_grad():
            count = oar.broadcast_to(self.total_count, size).astype("int64")
            return ops.binomial(count, oar.broadcast_to(self.probs, size)).astype(self.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.probs)
        rest = self.total_count - value
        ways = (self.total_count + 1).lgamma() - (value + 1).lgamma() - (rest + 1).lgamma()
        return within((value >= 0) & (rest >= 0), ways + xlogy(value, self.probs) + xlogy(rest, 1 - self.probs))

    def entropy(self) -> Tensor:
        outcomes = self._outcomes()
        log_prob = self.log_prob(outcomes)
        return -_mean_over(outcomes <= self.total_count, log_prob, log_prob)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Binomial, other)
        outcomes = self._outcomes(max(len(self._batch_shape), len(other._batch_shape)))
        log_prob = self.log_prob(outcomes)
        return _mean_over(outcomes <= self.total_count, log_prob, log_prob - other.log_prob(outcomes))

    def _outcomes(self, rank: int | None = None) -> Tensor:
        """All numbers of successes along a new first axis, before ``rank`` axes of one element."""
        most = self._most if self._most is not None else int(self.total_count.max())
        rank = len(self._batch_shape) if rank is None else rank
        return oar.arange(most + 1, dtype=self.dtype).reshape([-1] + [1] * rank)


def _mean_over(possible: Tensor, log_prob: Tensor, value: Tensor) -> Tensor:
    """The mean of a value under probabilities along the first axis, of which only some outcomes are possible."""
    certain = possible & (log_prob > float("-inf"))
    log_prob = oar.where(certain, log_prob, oar.zeros_like(log_prob))
    return oar.where(certain, log_prob.exp() * value, oar.zeros_like(value)).sum(0)
