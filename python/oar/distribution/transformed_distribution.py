"""Transformed random variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.distribution._sums import sum_rightmost
from oar.distribution._transform import log_det_of_each
from oar.distribution.distribution import Distribution
from oar.distribution.independent import Independent
from oar.distribution.transform import ChainTransform, Transform

if TYPE_CHECKING:
    from oar.distribution._parameters import SampleShape

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """What transforms make of a random variable.

    Args:
        base: the distribution of the variable.
        transforms: transforms; the first is applied first.

    Examples:
        >>> import oar
        >>> from oar.distribution import ExpTransform, Normal, TransformedDistribution
        >>> log_normal = TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()])
        >>> log_normal.log_prob(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-0.91893852, -1.85231221])
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(f"[TransformedDistribution] base must be a Distribution, but got {type(base).__name__}.")
        if isinstance(transforms, ChainTransform):
            transforms = transforms.transforms
        if not isinstance(transforms, Sequence):
            raise TypeError("[TransformedDistribution] transforms must be a sequence of transforms or a ChainTransform, "
                            f"but got {type(transforms).__name__}.")  # fmt: skip
        if not all(isinstance(transform, Transform) for transform in transforms):
            raise TypeError("[TransformedDistribution] transforms must be a sequence of transforms.")
        chain = ChainTransform(transforms)
        shape = (*base.batch_shape, *base.event_shape)
        needed = chain._domain.event_rank
        if len(shape) < needed:
            raise ValueError(f"[TransformedDistribution] the transforms need values of {needed} axes, "
                             f"but base has the shape {list(shape)}.")  # fmt: skip
        if needed > len(base.event_shape):
            base = Independent(base, needed - len(base.event_shape))
        self._base = base
        self._transforms = list(transforms)
        result = chain.forward_shape(shape)
        rank = chain._codomain.event_rank + len(base.event_shape) - needed
        super().__init__(result[: len(result) - rank], result[len(result) - rank :])

    def sample(self, shape: SampleShape = ()) -> Tensor:
        return self._transformed(self._base.sample(shape))

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return self._transformed(self._base.rsample(shape))

    def _transformed(self, value: Tensor) -> Tensor:
        for transform in self._transforms:
            value = transform.forward(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = value if isinstance(value, Tensor) else oar.to_tensor(value)
        log_prob: Any = 0.0
        rank = len(self._event_shape)
        for transform in reversed(self._transforms):
            x = transform.inverse(value)
            rank += transform._domain.event_rank - transform._codomain.event_rank
            log_prob = log_prob - sum_rightmost(log_det_of_each(transform, x), rank - transform._domain.event_rank)
            value = x
        return log_prob + sum_rightmost(self._base.log_prob(value), rank - len(self._base.event_shape))
