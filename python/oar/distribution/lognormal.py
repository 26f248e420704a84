"""The log-normal distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar.distribution.distribution import Distribution, of_class
from oar.distribution.normal import Normal
from oar.distribution.transform import ExpTransform
from oar.distribution.transformed_distribution import TransformedDistribution

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The log-normal distribution: numbers whose logarithms are normal.

    Args:
        loc: the mean of the logarithms.
        scale: the standard deviation of the logarithms.

    Examples:
        >>> import oar
        >>> from oar.distribution import LogNormal
        >>> log_normal = LogNormal(oar.to_tensor([0.0, 1.0]), 1.0)
        >>> log_normal.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.64872122, 4.48168898])
        >>> log_normal.entropy()
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.41893852, 2.41893864])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter) -> None:
        self._normal = Normal(loc, scale)
        self.loc = self._normal.loc
        self.scale = self._normal.scale
        super().__init__(self._normal, [ExpTransform()])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self._normal.mean + self._normal.variance / 2).exp()

    @property
    def variance(self) -> Tensor:
        """The variance."""
        variance = self._normal.variance
        return variance.expm1() * (2 * self._normal.mean + variance).exp()

    def entropy(self) -> Tensor:
        return self._normal.entropy() + self._normal.mean

    def probs(self, value: Tensor) -> Tensor:
        return self.prob(value)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(LogNormal, other)
        return self._normal.kl_divergence(other._normal)
