"""The normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.distribution._parameters import check_nonnegative, common_shape, to_tensor, to_tensors, to_value
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Normal"]

_LOG_TAU = math.log(2 * math.pi)


class Normal(Distribution):
    """The normal distribution. A complex ``loc`` gives the circular complex one, whose variance is that of both parts together.

    Args:
        loc: the mean.
        scale: the standard deviation.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import Normal
        >>> normal = Normal(oar.to_tensor([0.0, 1.0]), 2.0)
        >>> normal.sample([5]).shape
        [5, 2]
        >>> normal.log_prob(oar.to_tensor(1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.73708570, -1.61208570])
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Parameter | complex, scale: Parameter, name: str | None = None) -> None:
        check_nonnegative("Normal", scale=scale)
        self.name = name if name is not None else "Normal"
        if isinstance(loc, complex) or (isinstance(loc, (list, tuple, np.ndarray)) and np.iscomplexobj(loc)):
            wide = loc.dtype == "complex128" if isinstance(loc, np.ndarray) else oar.get_default_dtype() == "float64"
            loc = oar.to_tensor(loc, dtype="complex128" if wide else "complex64")
        self._is_complex = isinstance(loc, Tensor) and oar.is_complex(loc)
        if isinstance(loc, Tensor) and self._is_complex:
            self.loc = loc
            self.scale = to_tensor("Normal", "scale", scale, loc.real().dtype.name)
        else:
            self.loc, self.scale = to_tensors("Normal", keep_arrays=True, loc=loc, scale=scale)
        self.dtype = self.loc.dtype
        super().__init__(common_shape("Normal", self.loc, self.scale))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return oar.broadcast_to(self.loc, self._batch_shape)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        return oar.broadcast_to(self.scale.square(), self._batch_shape)

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
        size = self._extend_shape(shape)
        if self._is_complex:
            return self.loc + self.scale * oar.standard_normal(size, self.dtype)
        return self.loc + self.scale * ops.gaussian(size, 0.0, 1.0, seed, self.dtype)

    def entropy(self) -> Tensor:
        scale = oar.broadcast_to(self.scale, self._batch_shape)
        return 1 + math.log(math.pi) + 2 * scale.log() if self._is_complex else 0.5 + 0.5 * _LOG_TAU + scale.log()

    def log_prob(self, value: Tensor) -> Tensor:
        away = (to_value(value, self.loc) - self.loc) / self.scale
        if self._is_complex:
            return -away.abs().square() - 2 * self.scale.log() - math.log(math.pi)
        return -0.5 * away.square() - self.scale.log() - 0.5 * _LOG_TAU

    def probs(self, value: Tensor) -> Tensor:
        return self.prob(value)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(Normal, other)
        if self._is_complex != other._is_complex:
            raise TypeError("[Normal] a real and a complex distribution cannot be compared.")
        ratio = (self.scale / other.scale).square()
        away = ((self.loc - other.loc) / other.scale).abs().square()
        divergence = ratio + away - 1 - ratio.log()
        return divergence if self._is_complex else 0.5 * divergence
