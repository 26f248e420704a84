"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import broadcast, check_nonnegative, to_tensors, to_value
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution, which has neither a mean nor a variance.

    Args:
        loc: the median.
        scale: half of the width at half of the height.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import Cauchy
        >>> cauchy = Cauchy(0.0, oar.to_tensor([1.0, 2.0]))
        >>> cauchy.cdf(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.75000000, 0.64758360])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter, scale: Parameter, name: str | None = None) -> None:
        check_nonnegative("Cauchy", scale=scale)
        self.name = name if name is not None else "Cauchy"
        self.loc, self.scale = broadcast("Cauchy", *to_tensors("Cauchy", loc=loc, scale=scale))
        self.dtype = self.loc.dtype
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """There is none: asking for it is an error."""
        raise ValueError("Cauchy distribution has no mean.")

    @property
    def variance(self) -> Tensor:
        """There is none: asking for it is an error."""
        raise ValueError("Cauchy distribution has no variance.")

    @property
    def stddev(self) -> Tensor:
        """There is none: asking for it is an error."""
        raise ValueError("Cauchy distribution has no stddev.")

    def sample(self, shape: SampleShape = (), name: str | None = None) -> Tensor:
        """Draw numbers through which no gradient flows.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape.
            name: not used.

        Returns:
            a tensor.
        """
        with oar.no_grad():
            return self.rsample(shape)

    def rsample(self, shape: SampleShape = (), name: str | None = None) -> Tensor:
        """Draw numbers as a function of the parameters, so that gradients flow to them.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape.
            name: not used.

        Returns:
            a tensor.
        """
        angle = math.pi * (oar.uniform(self._extend_shape(shape), self.dtype, 0.0, 1.0) - 0.5)
        return self.loc + self.scale * angle.tan()

    def log_prob(self, value: Tensor) -> Tensor:
        away = (to_value(value, self.loc) - self.loc) / self.scale
        return -away.square().log1p() - (math.pi * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most ``value``.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        return ((to_value(value, self.loc) - self.loc) / self.scale).atan() / math.pi + 0.5

    def entropy(self) -> Tensor:
        return (4 * math.pi * self.scale).log()

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Cauchy, other)
        spread = (self.scale + other.scale).square() + (self.loc - other.loc).square()
        return (spread / (4 * self.scale * other.scale)).log()
