"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._limits import smallest
from oar.distribution._parameters import broadcast, check_nonnegative, to_tensors, to_value
from oar.distribution.transformed_distribution import TransformedDistribution
from oar.distribution.uniform import Uniform

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Gumbel"]

_EULER = 0.57721566490153286


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of the largest of many numbers.

    Args:
        loc: the mode.
        scale: the width.

    Examples:
        >>> import oar
        >>> from oar.distribution import Gumbel
        >>> gumbel = Gumbel(oar.to_tensor([0.0, 1.0]), 2.0)
        >>> gumbel.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.15443134, 2.15443134])
        >>> gumbel.cdf(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.54523921, 0.36787945])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter) -> None:
        check_nonnegative("Gumbel", scale=scale)
        self.loc, self.scale = broadcast("Gumbel", *to_tensors("Gumbel", loc=loc, scale=scale))
        self.base_dist = Uniform(oar.zeros_like(self.loc), oar.ones_like(self.loc))
        self.transforms = ()
        super().__init__(self.base_dist, self.transforms)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc + _EULER * self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.stddev.square()

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.pi / math.sqrt(6) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        away = (to_value(value, self.loc) - self.loc) / self.scale
        return -(away + (-away).exp()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        return (-((self.loc - to_value(value, self.loc)) / self.scale).exp()).exp()

    def entropy(self) -> Tensor:
        return self.scale.log() + 1 + _EULER

    def sample(self, shape: SampleShape = ()) -> Tensor:
        with oar.no_grad():
            return self.rsample(shape)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        tiny = smallest(self.loc.dtype)
        drawn = ops.exponential(self._extend_shape(shape), 1.0, self.loc.dtype).clip(min=tiny)
        return self.loc - self.scale * drawn.log()
