"""The geometric distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._parameters import check_probability, to_tensors, to_value, within
from oar.distribution._sums import xlogy
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Geometric"]


class Geometric(Distribution):
    """The geometric distribution: the number of failures before the first success.

    Args:
        probs: the probability of success.

    Examples:
        >>> import oar
        >>> from oar.distribution import Geometric
        >>> geometric = Geometric(oar.to_tensor([0.25, 0.5]))
        >>> geometric.mean
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [3., 1.])
        >>> geometric.pmf(2)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.14062500, 0.12500000])
    """

    probs: Tensor  # type: ignore[assignment]

    def __init__(self, probs: Parameter) -> None:
        check_probability("Geometric", probs=probs)
        (self.probs,) = to_tensors("Geometric", probs=probs)
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return 1 / self.probs - 1

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (1 / self.probs - 1) / self.probs

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def pmf(self, k: float | Tensor) -> Tensor:
        """The probability of ``k`` failures.

        Args:
            k: numbers of failures.

        Returns:
            a tensor.
        """
        return self.log_pmf(k).exp()

    def log_pmf(self, k: float | Tensor) -> Tensor:
        """The logarithm of the probability of ``k`` failures.

        Args:
            k: numbers of failures.

        Returns:
            a tensor.
        """
        k = to_value(k, self.probs, numbers=True)
        return within(k >= 0, xlogy(k, 1 - self.probs) + self.probs.log())

    def log_prob(self, value: Tensor) -> Tensor:
        return self.log_pmf(value)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        trials = ops.exponential(self._extend_shape(shape), 1.0, self.probs.dtype)
        return (-trials / (-self.probs).log1p()).floor()

    def entropy(self) -> Tensor:
        rest = 1 - self.probs
        return -(xlogy(rest, rest) + xlogy(self.probs, self.probs)) / self.probs

    def cdf(self, k: float | Tensor) -> Tensor:
        """The probability of at most ``k``.

        Args:
            k: the points.

        Returns:
            a tensor.
        """
        k = to_value(k, self.probs, numbers=True)
        reached = 1 - (1 - self.probs) ** (k.floor() + 1)
        return oar.where(k >= 0, reached, oar.zeros_like(reached))

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Geometric, other)
        p, q = self.probs, other.probs
        return p.log() - q.log() + (1 / p - 1) * ((-p).log1p() - (-q).log1p())
