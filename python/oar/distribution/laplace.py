"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._parameters import broadcast, check_nonnegative, to_tensors, to_value
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution: two exponential ones, back to back.

    Args:
        loc: the mean.
        scale: the mean distance from ``loc``.

    Examples:
        >>> import oar
        >>> from oar.distribution import Laplace
        >>> laplace = Laplace(oar.to_tensor([0.0, 1.0]), 2.0)
        >>> laplace.cdf(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.69673467, 0.50000000])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter) -> None:
        check_nonnegative("Laplace", scale=scale)
        self.loc, self.scale = broadcast("Laplace", *to_tensors("Laplace", loc=loc, scale=scale))
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 2 * self.scale.square()

    def log_prob(self, value: float | Tensor) -> Tensor:
        value = to_value(value, self.loc, numbers=True)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()

    def cdf(self, value: float | Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        away = to_value(value, self.loc, numbers=True) - self.loc
        tail = 0.5 * (-away.abs() / self.scale).exp()
        return oar.where(away < 0, tail, 1 - tail)

    def icdf(self, value: float | Tensor) -> Tensor:
        """The number whose ``cdf`` is ``value``.

        Args:
            value: probabilities.

        Returns:
            a tensor.
        """
        away = to_value(value, self.loc, numbers=True) - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        size = self._extend_shape(shape)
        side = 2 * ops.bernoulli(ops.full(size, 0.5, self.loc.dtype)) - 1
        return self.loc + self.scale * side * ops.exponential(size, 1.0, self.loc.dtype)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Laplace, other)
        away = (self.loc - other.loc).abs()
        ratio = self.scale / other.scale
        return ratio * (-away / self.scale).exp() + away / other.scale - ratio.log() - 1
