"""Transforms of single numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import Tensor
from oar.distribution import constraint, variable
from oar.distribution._transform import Transform, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AbsTransform", "AffineTransform", "ExpTransform", "PowerTransform", "SigmoidTransform", "TanhTransform"]


class AbsTransform(Transform):
    """The absolute value. Two numbers are taken to one, so ``inverse`` returns both.

    Examples:
        >>> import oar
        >>> from oar.distribution import AbsTransform
        >>> below, above = AbsTransform().inverse(oar.to_tensor([1.0, 2.0]))
        >>> below
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1., -2.])
    """

    _type = Type.SURJECTION

    @property
    def _codomain(self) -> variable.Variable:
        return variable.positive

    def _forward(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:
        zero = oar.zeros([], y.dtype)
        return zero, zero


class AffineTransform(Transform):
    """``loc + scale * x``.

    Args:
        loc: what is added, a tensor.
        scale: the factor, a tensor.

    Examples:
        >>> import oar
        >>> from oar.distribution import AffineTransform
        >>> affine = AffineTransform(oar.to_tensor(1.0), oar.to_tensor(2.0))
        >>> affine.inverse(affine.forward(oar.to_tensor([0.0, 5.0])))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0., 5.])
    """

    _type = Type.BIJECTION

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        for name, value in (("loc", loc), ("scale", scale)):
            if not isinstance(value, Tensor):
                raise TypeError(f"[AffineTransform] {name} must be a Tensor, but got {type(value).__name__}.")
        self._loc = loc
        self._scale = scale
        super().__init__()

    @property
    def loc(self) -> Tensor:
        """What is added."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The factor."""
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        return self._loc + self._scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._scale.abs().log()

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return -self._scale.abs().log()

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return tuple(oar.broadcast_shape(oar.broadcast_shape(list(shape), self._loc.shape), self._scale.shape))

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._forward_shape(shape)


class ExpTransform(Transform):
    """The exponential function.

    Examples:
        >>> import oar
        >>> from oar.distribution import ExpTransform
        >>> ExpTransform().forward(oar.to_tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.        , 2.71828175])
    """

    _type = Type.BIJECTION

    def __init__(self) -> None:
        super().__init__()

    @property
    def _codomain(self) -> variable.Variable:
        return variable.positive

    def _forward(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``x ** power``.

    Args:
        power: the exponent, a tensor.

    Examples:
        >>> import oar
        >>> from oar.distribution import PowerTransform
        >>> square = PowerTransform(oar.to_tensor(2.0))
        >>> square.forward_log_det_jacobian(oar.to_tensor([0.5, 3.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 1.79175949])
    """

    _type = Type.BIJECTION

    def __init__(self, power: Tensor) -> None:
        if not isinstance(power, Tensor):
            raise TypeError(f"[PowerTransform] power must be a Tensor, but got {type(power).__name__}.")
        self._power = power
        super().__init__()

    @property
    def power(self) -> Tensor:
        """The exponent."""
        return self._power

    @property
    def _codomain(self) -> variable.Variable:
        return variable.positive

    def _forward(self, x: Tensor) -> Tensor:
        return x**self._power

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self._power)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return (self._power * x ** (self._power - 1)).abs().log()

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return tuple(oar.broadcast_shape(list(shape), self._power.shape))

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._forward_shape(shape)


class SigmoidTransform(Transform):
    """The logistic function.

    Examples:
        >>> import oar
        >>> from oar.distribution import SigmoidTransform
        >>> SigmoidTransform().forward(oar.to_tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.50000000, 0.73105860])
    """

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Variable(False, 0, constraint.Range(0.0, 1.0))

    def _forward(self, x: Tensor) -> Tensor:
        return oar.nn.functional.sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log() - (-y).log1p()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return -oar.nn.functional.softplus(-x) - oar.nn.functional.softplus(x)


class TanhTransform(Transform):
    """The hyperbolic tangent.

    Examples:
        >>> import oar
        >>> from oar.distribution import TanhTransform
        >>> TanhTransform().forward(oar.to_tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.76159418])
    """

    _type = Type.BIJECTION

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Variable(False, 0, constraint.Range(-1.0, 1.0))

    def _forward(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) loses its digits where tanh(x) is near 1.
        return 2 * (math.log(2) - x - oar.nn.functional.softplus(-2 * x))
