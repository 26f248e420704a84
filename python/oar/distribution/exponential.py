"""The exponential distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar._C import ops
from oar.distribution._parameters import check_positive, to_tensors, to_value, within
from oar.distribution.distribution import Distribution, of_class
from oar.distribution.exponential_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution: times between events that happen at a constant rate.

    Args:
        rate: the number of events per unit of time.

    Examples:
        >>> import oar
        >>> from oar.distribution import Exponential
        >>> wait = Exponential(oar.to_tensor([0.5, 2.0]))
        >>> wait.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2.        , 0.50000000])
        >>> wait.cdf(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.39346933, 0.86466473])
    """

    rate: Tensor

    def __init__(self, rate: Parameter) -> None:
        check_positive("Exponential", rate=rate)
        (self.rate,) = to_tensors("Exponential", rate=rate)
        self.dtype = self.rate.dtype
        super().__init__(self.rate.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return 1 / self.rate.square()

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return ops.exponential(self._extend_shape(shape), 1.0, self.dtype) / self.rate

    def log_prob(self, value: float | Tensor) -> Tensor:
        value = to_value(value, self.rate, widen=True)
        return within(value >= 0, self.rate.log() - self.rate * value)

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    def cdf(self, value: float | Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        return -(-self.rate * to_value(value, self.rate, widen=True).clip(min=0)).expm1()

    def icdf(self, value: float | Tensor) -> Tensor:
        """The number whose ``cdf`` is ``value``.

        Args:
            value: probabilities.

        Returns:
            a tensor.
        """
        return -(-to_value(value, self.rate, widen=True)).log1p() / self.rate

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Exponential, other)
        ratio = other.rate / self.rate
        return ratio - 1 - ratio.log()

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        return -(-parameters[0]).log()
