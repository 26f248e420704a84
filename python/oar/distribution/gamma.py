"""The gamma distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import check_positive, common_shape, to_tensors, to_value, within
from oar.distribution._sums import gamma_sample, xlogy
from oar.distribution.distribution import Distribution, of_class
from oar.distribution.exponential_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution.

    Args:
        concentration: the shape.
        rate: the reciprocal of the scale.

    Examples:
        >>> import oar
        >>> from oar.distribution import Gamma
        >>> gamma = Gamma(oar.to_tensor([0.5, 3.0]), 2.0)
        >>> gamma.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.25000000, 1.50000000])
        >>> gamma.rsample([5]).shape
        [5, 2]
    """

    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Parameter, rate: Parameter) -> None:
        check_positive("Gamma", concentration=concentration, rate=rate)
        self.concentration, self.rate = to_tensors("Gamma", concentration=concentration, rate=rate)
        self.dtype = self.concentration.dtype
        super().__init__(common_shape("Gamma", self.concentration, self.rate))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.concentration / self.rate.square()

    def log_prob(self, value: float | Tensor) -> Tensor:
        value = to_value(value, self.concentration, widen=True)
        density = (self.concentration * self.rate.log() + xlogy(self.concentration - 1, value) - self.rate * value
                   - self.concentration.lgamma())  # fmt: skip
        return within(value >= 0, density)

    def entropy(self) -> Tensor:
        shape = self.concentration
        return shape - self.rate.log() + shape.lgamma() + (1 - shape) * shape.digamma()

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return gamma_sample(oar.broadcast_to(self.concentration, self._extend_shape(shape))) / self.rate

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Gamma, other)
        a, b = self.concentration, other.concentration
        return ((a - b) * a.digamma() - a.lgamma() + b.lgamma() + b * (self.rate / other.rate).log()
                + a * (other.rate / self.rate - 1))  # fmt: skip

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        shape, rate = parameters[0] + 1, -parameters[1]
        return shape.lgamma() - shape * rate.log()
