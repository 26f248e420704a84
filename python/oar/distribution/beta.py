"""The beta distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import broadcast, check_positive, to_tensors, to_value, within
from oar.distribution._sums import log_gamma_sample, xlogy
from oar.distribution.exponential_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution, on the numbers from 0 to 1.

    Args:
        alpha: the first concentration; positive.
        beta: the second concentration; positive.

    Examples:
        >>> import oar
        >>> from oar.distribution import Beta
        >>> beta = Beta(oar.to_tensor([0.5, 3.0]), 1.0)
        >>> beta.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.33333334, 0.75000000])
        >>> beta.prob(oar.to_tensor(0.25))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.        , 0.18750000])
    """

    alpha: Tensor
    beta: Tensor

    def __init__(self, alpha: Parameter, beta: Parameter) -> None:
        check_positive("Beta", alpha=alpha, beta=beta)
        self.alpha, self.beta = broadcast("Beta", *to_tensors("Beta", alpha=alpha, beta=beta))
        super().__init__(self.alpha.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total.square() * (total + 1))

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.alpha, widen=True)
        density = xlogy(self.alpha - 1, value) + xlogy(self.beta - 1, 1 - value)
        return within((value >= 0) & (value <= 1), density - self._log_beta())

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        size = self._extend_shape(shape)
        first, second = (log_gamma_sample(oar.broadcast_to(part, size)) for part in (self.alpha, self.beta))
        return oar.nn.functional.sigmoid(first - second)

    def entropy(self) -> Tensor:
        a, b, total = self.alpha, self.beta, self.alpha + self.beta
        return self._log_beta() - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (total - 2) * total.digamma()

    def _log_beta(self) -> Tensor:
        return self.alpha.lgamma() + self.beta.lgamma() - (self.alpha + self.beta).lgamma()

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        return (self.alpha, self.beta)

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        x, y = parameters
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
