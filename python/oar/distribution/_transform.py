"""What all transforms have."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import oar
from oar._C import Tensor
from oar.distribution import variable
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["Transform", "Type", "log_det_of_each"]


class Type(enum.Enum):
    """Which values a transform takes to which."""

    BIJECTION = "bijection"
    INJECTION = "injection"
    SURJECTION = "surjection"
    OTHER = "other"

    @classmethod
    def is_injective(cls, _type: Type) -> bool:
        """Whether different values have different results."""
        return _type in (cls.BIJECTION, cls.INJECTION)


class Transform:
    """The base of transforms of random variables, with their inverses and the derivatives of both.

    A subclass defines ``_forward``, ``_inverse`` and ``_forward_log_det_jacobian`` or ``_inverse_log_det_jacobian``, and, if
    shapes change, ``_forward_shape`` and ``_inverse_shape``. Called with a tensor, a transform is applied to it; called with a
    distribution, it gives a ``TransformedDistribution``; called with a transform, a ``ChainTransform``.

    Examples:
        >>> import oar
        >>> from oar.distribution import Transform, Normal
        >>> class Cube(Transform):
        ...     def _forward(self, x):
        ...         return x ** 3
        ...     def _inverse(self, y):
        ...         return y.sign() * y.abs() ** (1 / 3)
        ...     def _forward_log_det_jacobian(self, x):
        ...         return (3 * x * x).log()
        >>> Cube().forward(oar.to_tensor([2.0]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [8.])
        >>> Cube()(Normal(0.0, 1.0)).prob(oar.to_tensor(8.0))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.00449925)
    """

    _type = Type.INJECTION

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def _is_injective(cls) -> bool:
        return Type.is_injective(cls._type)

    def __call__(self, input: Any) -> Any:
        """Apply the transform to a tensor, a distribution or another transform.

        Args:
            input: the tensor, distribution or transform.

        Returns:
            a tensor, a ``TransformedDistribution`` or a ``ChainTransform``, which applies this transform first.
        """
        if isinstance(input, Distribution):
            from oar.distribution.transformed_distribution import TransformedDistribution

            return TransformedDistribution(input, [self])
        if isinstance(input, Transform):
            from oar.distribution._composed_transforms import ChainTransform

            return ChainTransform([self, input])
        return self.forward(input)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the transform.

        Args:
            x: the values.

        Returns:
            a tensor.
        """
        self._check_value("x", x, self._domain)
        return self._forward(x)

    def inverse(self, y: Tensor) -> Any:
        """Find what the transform takes to ``y``.

        Args:
            y: results of the transform.

        Returns:
            a tensor; of ``AbsTransform`` both.
        """
        self._check_value("y", y, self._codomain)
        return self._inverse(y)

    def forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the absolute determinant of the derivative.

        Args:
            x: the values.

        Returns:
            a tensor.
        """
        self._check_value("x", x, self._domain)
        if not self._is_injective():
            raise NotImplementedError(f"{type(self).__name__} is not injective, so it has no forward_log_det_jacobian.")
        return self._call_forward_log_det_jacobian(x)

    def inverse_log_det_jacobian(self, y: Tensor) -> Any:
        """The logarithm of the absolute determinant of the derivative of the inverse.

        Args:
            y: results of the transform.

        Returns:
            a tensor; of ``AbsTransform`` both.
        """
        self._check_value("y", y, self._codomain)
        return self._call_inverse_log_det_jacobian(y)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the result for values of a shape.

        Args:
            shape: the shape of the values.

        Returns:
            a sequence of integers.
        """
        self._check_shape(shape)
        return self._forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the values for a result of a shape.

        Args:
            shape: the shape of the result.

        Returns:
            a sequence of integers.
        """
        self._check_shape(shape)
        return self._inverse_shape(shape)

    @property
    def _domain(self) -> variable.Variable:
        return variable.real

    @property
    def _codomain(self) -> variable.Variable:
        return variable.real

    def _check_value(self, name: str, value: Any, where: variable.Variable) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"[{type(self).__name__}] {name} must be a Tensor, but got {type(value).__name__}.")
        if value.ndim < where.event_rank:
            raise ValueError(f"[{type(self).__name__}] {name} has {value.ndim} axes, but needs at least {where.event_rank}.")

    def _check_shape(self, shape: Any) -> None:
        if not isinstance(shape, Sequence) or not all(isinstance(size, int) for size in shape):
            raise TypeError(f"[{type(self).__name__}] shape must be a sequence of integers, but got {shape!r}.")

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _forward.")

    def _inverse(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _inverse.")

    def _call_forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        if hasattr(self, "_forward_log_det_jacobian"):
            return self._forward_log_det_jacobian(x)
        if hasattr(self, "_inverse_log_det_jacobian"):
            return -self._inverse_log_det_jacobian(self.forward(x))
        self._refuse_derivative()

    def _call_inverse_log_det_jacobian(self, y: Tensor) -> Any:
        if hasattr(self, "_inverse_log_det_jacobian"):
            return self._inverse_log_det_jacobian(y)
        if hasattr(self, "_forward_log_det_jacobian"):
            return -self._forward_log_det_jacobian(self._inverse(y))
        self._refuse_derivative()

    def _refuse_derivative(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__} defines neither _forward_log_det_jacobian nor _inverse_log_det_jacobian.")

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return shape


def log_det_of_each(transform: Transform, x: Tensor) -> Tensor:
    """``forward_log_det_jacobian`` for each value: one number for all of them, as of an affine transform, is repeated."""
    derivative = transform.forward_log_det_jacobian(x)
    shape = oar.broadcast_shape(derivative.shape, x.shape[: x.ndim - transform._domain.event_rank])
    return oar.broadcast_to(derivative, shape)
