"""The Bernoulli distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._limits import epsilon, smallest
from oar.distribution._parameters import check_probability, to_tensors, to_value
from oar.distribution.distribution import Distribution, of_class
from oar.distribution.exponential_family import ExponentialFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Bernoulli"]


class Bernoulli(ExponentialFamily):
    """The Bernoulli distribution: 1 with a probability, else 0.

    Probabilities of 0 and 1 are moved inside by one epsilon of the dtype, as in Paddle, so that logarithms are finite.

    Args:
        probs: the probability of 1.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import Bernoulli
        >>> coin = Bernoulli(oar.to_tensor([0.25, 0.5]))
        >>> coin.variance
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.18750000, 0.25000000])
        >>> coin.prob(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.25000000, 0.50000000])
    """

    probs: Tensor  # type: ignore[assignment]

    def __init__(self, probs: Parameter, name: str | None = None) -> None:
        check_probability("Bernoulli", probs=probs)
        self.name = name if name is not None else "Bernoulli"
        (probs,) = to_tensors("Bernoulli", probs=probs)
        self.dtype = probs.dtype
        eps = epsilon(probs.dtype)
        self.probs = probs.clip(eps, 1 - eps)
        super().__init__(self.probs.shape)

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds."""
        return self.probs.logit()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return self.probs * (1 - self.probs)

    def sample(self, shape: SampleShape = ()) -> Tensor:
        with oar.no_grad():
            return ops.bernoulli(oar.broadcast_to(self.probs, self._extend_shape(shape)))

    def rsample(self, shape: SampleShape = (), temperature: float = 1.0) -> Tensor:
        """Draw logits. Their ``sigmoid`` is between 0 and 1 and leans to both ends the more, the lower the temperature is.

        Gradients flow through them to the parameters, which they do not through the zeros and ones of ``sample``.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape.
            temperature: how far the numbers are from 0 and 1; positive.

        Returns:
            a tensor.
        """
        tiny = smallest(self.dtype)
        uniform = oar.uniform(self._extend_shape(shape), self.dtype, 0.0, 1.0).clip(min=tiny)
        return (self.logits + uniform.log() - (-uniform).log1p()) / temperature

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        value, probs = oar.broadcast_tensors([to_value(value, self.probs), self.probs])
        return oar.where(value < 0, oar.zeros_like(probs), oar.where(value < 1, 1 - probs, oar.ones_like(probs)))

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.probs)
        return value * self.probs.log() + (1 - value) * (-self.probs).log1p()

    def entropy(self) -> Tensor:
        return -self.probs * self.probs.log() - (1 - self.probs) * (-self.probs).log1p()

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Bernoulli, other)
        p, q = self.probs, other.probs
        return p * (p.log() - q.log()) + (1 - p) * ((-p).log1p() - (-q).log1p())

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        return oar.nn.functional.softplus(parameters[0])
