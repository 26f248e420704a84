"""What all distributions have."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import oar
from oar.distribution._parameters import sample_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor
    from oar.distribution._parameters import SampleShape

__all__ = ["Distribution", "of_class"]

_Kind = TypeVar("_Kind", bound="Distribution")


class Distribution:
    """The base of all distributions. A subclass defines the methods that it can compute.

    Args:
        batch_shape: the shape of the independent distributions that one object holds.
        event_shape: the shape of one draw from one of them.

    Examples:
        >>> from oar.distribution import Distribution
        >>> shapes = Distribution([5], [2, 3])
        >>> shapes.batch_shape, shapes.event_shape
        ((5,), (2, 3))
    """

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = ()) -> None:
        self._batch_shape = tuple(batch_shape)
        self._event_shape = tuple(event_shape)

    @property
    def batch_shape(self) -> Sequence[int]:
        """The shape of the independent distributions that this object holds."""
        return self._batch_shape

    @property
    def event_shape(self) -> Sequence[int]:
        """The shape of one draw from one of the distributions."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean, of the batch shape and the event shape."""
        raise NotImplementedError(f"{type(self).__name__} has no mean.")

    @property
    def variance(self) -> Tensor:
        """The variance, of the batch shape and the event shape."""
        raise NotImplementedError(f"{type(self).__name__} has no variance.")

    def sample(self, shape: SampleShape = ()) -> Tensor:
        """Draw numbers through which no gradient flows.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape, then the event shape.

        Returns:
            a tensor.
        """
        with oar.no_grad():
            return self.rsample(shape)

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        """Draw numbers as a function of the parameters, so that gradients flow to them.

        Args:
            shape: how many to draw. The result has this shape, then the batch shape, then the event shape.

        Returns:
            a tensor.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot draw numbers that have a gradient. Use sample().")

    def entropy(self) -> Tensor:
        """The entropy in nats, of the batch shape."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy that can be computed.")

    def kl_divergence(self, other: Distribution) -> Tensor:
        """The divergence of Kullback and Leibler from this distribution to another, in nats.

        Args:
            other: the other distribution.

        Returns:
            a tensor of the batch shape.
        """
        from oar.distribution.kl import kl_divergence

        return kl_divergence(self, other)

    def prob(self, value: Tensor) -> Tensor:
        """The density, or the probability if the distribution is discrete.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        return self.log_prob(value).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability if the distribution is discrete.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        raise NotImplementedError(f"{type(self).__name__} has no density that can be computed.")

    def probs(self, value: Tensor) -> Tensor:
        """``prob`` under its older name.

        Args:
            value: the points.

        Returns:
            a tensor.
        """
        raise NotImplementedError(f"{type(self).__name__} has no probs(). Use prob().")

    def _extend_shape(self, shape: SampleShape) -> list[int]:
        """The shape of a sample: what the user wants, then the batch shape, then the event shape."""
        return [*sample_shape(shape), *self._batch_shape, *self._event_shape]


def of_class(wanted: type[_Kind], other: Distribution) -> _Kind:
    """The other distribution, of which a divergence is wanted; an error if it is of another class."""
    if not isinstance(other, wanted):
        raise TypeError(f"[{wanted.__name__}] other must be of the class {wanted.__name__}, but got {type(other).__name__}.")
    return other
