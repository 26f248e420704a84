"""The Dirichlet distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import check_positive, to_tensors, to_value
from oar.distribution._sums import log_gamma_sample, xlogy
from oar.distribution.exponential_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors whose elements are positive and add up to 1.

    Args:
        concentration: the concentrations, along the last axis; positive.

    Examples:
        >>> import oar
        >>> from oar.distribution import Dirichlet
        >>> dirichlet = Dirichlet(oar.to_tensor([1.0, 2.0, 5.0]))
        >>> dirichlet.mean
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.12500000, 0.25000000, 0.62500000])
        >>> dirichlet.sample([4]).shape
        [4, 3]
    """

    concentration: Tensor

    def __init__(self, concentration: Parameter) -> None:
        check_positive("Dirichlet", concentration=concentration)
        (self.concentration,) = to_tensors("Dirichlet", concentration=concentration)
        if self.concentration.ndim == 0:
            raise ValueError("[Dirichlet] concentration is 0-d; it needs an axis of concentrations.")
        shape = self.concentration.shape
        super().__init__(shape[:-1], shape[-1:])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self._total(keepdim=True)

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        total = self._total(keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        drawn = log_gamma_sample(oar.broadcast_to(self.concentration, self._extend_shape(shape)))
        return oar.nn.functional.softmax(drawn, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.concentration, widen=True)
        return xlogy(self.concentration - 1, value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        total = self._total(keepdim=False)
        spread = ((self.concentration - 1) * self.concentration.digamma()).sum(-1)
        return self._log_normalizer(self.concentration) + (total - self._event_shape[0]) * total.digamma() - spread

    def _total(self, keepdim: bool) -> Tensor:
        return self.concentration.sum(-1, keepdim=keepdim)

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        (concentration,) = parameters
        return concentration.lgamma().sum(-1) - concentration.sum(-1).lgamma()
