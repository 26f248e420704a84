"""The uniform distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._parameters import common_shape, to_tensors, to_value, within
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution between two numbers.

    Args:
        low: the lower end.
        high: the upper end.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import Uniform
        >>> uniform = Uniform(0.0, oar.to_tensor([1.0, 4.0]))
        >>> uniform.sample([5]).shape
        [5, 2]
        >>> uniform.prob(oar.to_tensor(2.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.25000000])
    """

    low: Tensor
    high: Tensor

    def __init__(self, low: Parameter, high: Parameter, name: str | None = None) -> None:
        self.name = name if name is not None else "Uniform"
        self.low, self.high = to_tensors("Uniform", keep_arrays=True, low=low, high=high)
        self.dtype = self.low.dtype
        super().__init__(common_shape("Uniform", self.low, self.high))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return (self.high - self.low).square() / 12

    def sample(self, shape: SampleShape = (), seed: int = 0) -> Tensor:
        """Draw numbers. As in Paddle, gradients flow to the parameters here too.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape.
            seed: a seed for this call; 0 uses the global stream.

        Returns:
            a tensor.
        """
        return self._draw(shape, seed)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        return self._draw(shape, 0)

    def _draw(self, shape: SampleShape, seed: int) -> Tensor:
        return self.low + (self.high - self.low) * ops.uniform(self._extend_shape(shape), self.dtype, 0.0, 1.0, seed)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density. As in Paddle, the ends are outside.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        value = to_value(value, self.low)
        width = oar.broadcast_to(self.high - self.low, self._batch_shape)
        # NaN where low exceeds high, as the width has no logarithm there.
        return within(self._inside(value), oar.zeros_like(width)) - width.log()

    def prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.low)
        width = oar.broadcast_to(self.high - self.low, self._batch_shape)
        return self._inside(value).astype(self.dtype) / width

    def probs(self, value: Tensor) -> Tensor:
        return self.prob(value)

    def _inside(self, value: Tensor) -> Tensor:
        return (self.low < value) & (value < self.high)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()

    def kl_divergence(self, other: Distribution) -> Tensor:
        """The divergence of Kullback and Leibler to another uniform distribution; infinite if that does not cover this one.

        Args:
            other: the other distribution.

        Returns:
            a tensor of the batch shape.
        """
        other = of_class(Uniform, other)
        inside = (other.low <= self.low) & (self.high <= other.high)
        return oar.where(inside, ((other.high - other.low) / (self.high - self.low)).log(), float("inf"))
