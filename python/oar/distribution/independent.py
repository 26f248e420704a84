"""Batches as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar.distribution._sums import sum_rightmost
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import SampleShape

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch axes count as axes of its events: log-densities and entropies are summed over them.

    Args:
        base: the distribution.
        reinterpreted_batch_rank: the number of such axes, from 1 to the number of batch axes.

    Examples:
        >>> import oar
        >>> from oar.distribution import Independent, Normal
        >>> pair = Independent(Normal(oar.zeros([3, 2]), oar.ones([3, 2])), 1)
        >>> pair.batch_shape, pair.event_shape
        ((3,), (2,))
        >>> pair.log_prob(oar.zeros([2]))
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.83787704, -1.83787704, -1.83787704])
    """

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(f"[Independent] base must be a Distribution, but got {type(base).__name__}.")
        axes = len(base.batch_shape)
        if not 0 < reinterpreted_batch_rank <= axes:
            raise ValueError(f"[Independent] reinterpreted_batch_rank is {reinterpreted_batch_rank}, "
                             f"but base has {axes} batch axes. Pass a number from 1 to {axes}.")  # fmt: skip
        self._base = base
        self._reinterpreted_batch_rank = reinterpreted_batch_rank
        shape = (*base.batch_shape, *base.event_shape)
        kept = axes - reinterpreted_batch_rank
        super().__init__(shape[:kept], shape[kept:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self._base.variance

    def sample(self, shape: SampleShape = ()) -> Tensor:
        return self._base.sample(shape)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return self._base.rsample(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self._base.log_prob(value), self._reinterpreted_batch_rank)

    def entropy(self) -> Tensor:
        return sum_rightmost(self._base.entropy(), self._reinterpreted_batch_rank)
