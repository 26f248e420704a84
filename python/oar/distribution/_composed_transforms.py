"""Transforms of vectors, of several axes, and of other transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import oar
from oar.distribution import constraint, variable
from oar.distribution._sums import sum_rightmost
from oar.distribution._transform import Transform, Type, log_det_of_each

if TYPE_CHECKING:
    from oar._C import Tensor

__all__ = ["ChainTransform", "IndependentTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform",
           "StickBreakingTransform"]  # fmt: skip


def _check_transforms(owner: str, transforms: Any) -> None:
    if not isinstance(transforms, Sequence):
        raise TypeError(f"[{owner}] transforms must be a sequence of transforms, but got {type(transforms).__name__}.")
    for transform in transforms:
        if not isinstance(transform, Transform):
            raise TypeError(f"[{owner}] transforms must be transforms, but one is of type {type(transform).__name__}.")


class ChainTransform(Transform):
    """Transforms one after another.

    Args:
        transforms: a sequence of transforms; the first is applied first.

    Examples:
        >>> import oar
        >>> from oar.distribution import AffineTransform, ChainTransform, ExpTransform
        >>> chain = ChainTransform([AffineTransform(oar.to_tensor(0.0), oar.to_tensor(2.0)), ExpTransform()])
        >>> chain.forward(oar.to_tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.        , 2.71828175])
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        _check_transforms("ChainTransform", transforms)
        self.transforms = transforms
        super().__init__()

    def _is_injective(self) -> bool:  # type: ignore[override]
        return all(transform._is_injective() for transform in self.transforms)

    @property
    def _domain(self) -> variable.Variable:
        """That of the first transform, with as many axes as any of them needs."""
        if not self.transforms:
            return variable.real
        domain = self.transforms[0]._domain
        rank = self.transforms[-1]._codomain.event_rank
        for transform in reversed(self.transforms):
            rank = max(rank - transform._codomain.event_rank + transform._domain.event_rank, transform._domain.event_rank)
        return variable.Independent(domain, rank - domain.event_rank) if rank > domain.event_rank else domain

    @property
    def _codomain(self) -> variable.Variable:
        """That of the last transform, with as many axes as any of them gives."""
        if not self.transforms:
            return variable.real
        codomain = self.transforms[-1]._codomain
        rank = self.transforms[0]._domain.event_rank
        for transform in self.transforms:
            rank = max(rank + transform._codomain.event_rank - transform._domain.event_rank, transform._codomain.event_rank)
        return variable.Independent(codomain, rank - codomain.event_rank) if rank > codomain.event_rank else codomain

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            y = transform.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        total: Any = oar.zeros_like(x) if not self.transforms else 0.0
        rank = self._domain.event_rank
        for transform in self.transforms:
            total = total + sum_rightmost(log_det_of_each(transform, x), rank - transform._domain.event_rank)
            x = transform.forward(x)
            rank += transform._codomain.event_rank - transform._domain.event_rank
        return total

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for transform in self.transforms:
            shape = transform.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        return shape


class IndependentTransform(Transform):
    """A transform whose last batch axes count as axes of its values: the derivative is summed over them.

    Args:
        base: the transform.
        reinterpreted_batch_rank: the number of such axes.

    Examples:
        >>> import oar
        >>> from oar.distribution import ExpTransform, IndependentTransform
        >>> IndependentTransform(ExpTransform(), 1).forward_log_det_jacobian(oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [3., 7.])
    """

    def __init__(self, base: Transform, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Transform):
            raise TypeError(f"[IndependentTransform] base must be a Transform, but got {type(base).__name__}.")
        if reinterpreted_batch_rank <= 0:
            raise ValueError(
                f"[IndependentTransform] reinterpreted_batch_rank must be positive, but got {reinterpreted_batch_rank}.")
        self._base = base
        self._reinterpreted_batch_rank = reinterpreted_batch_rank
        super().__init__()

    def _is_injective(self) -> bool:  # type: ignore[override]
        return self._base._is_injective()

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(self._base._domain, self._reinterpreted_batch_rank)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Independent(self._base._codomain, self._reinterpreted_batch_rank)

    def _forward(self, x: Tensor) -> Tensor:
        return self._base.forward(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return sum_rightmost(log_det_of_each(self._base, x), self._reinterpreted_batch_rank)

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._base.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Values of one shape as values of another one.

    Args:
        in_event_shape: the shape of a value.
        out_event_shape: the shape of the result, of as many elements.

    Examples:
        >>> import oar
        >>> from oar.distribution import ReshapeTransform
        >>> ReshapeTransform((2, 3), (6,)).forward(oar.ones([5, 2, 3])).shape
        [5, 6]
    """

    _type = Type.BIJECTION

    def __init__(self, in_event_shape: Sequence[int], out_event_shape: Sequence[int]) -> None:
        for name, shape in (("in_event_shape", in_event_shape), ("out_event_shape", out_event_shape)):
            if not isinstance(shape, Sequence):
                raise TypeError(f"[ReshapeTransform] {name} must be a sequence of integers, but got {shape!r}.")
        if math.prod(in_event_shape) != math.prod(out_event_shape):
            raise ValueError(
                f"[ReshapeTransform] {list(in_event_shape)} has {math.prod(in_event_shape)} elements, "
                f"but {list(out_event_shape)} has {math.prod(out_event_shape)}.")  # fmt: skip
        self._in_event_shape = tuple(in_event_shape)
        self._out_event_shape = tuple(out_event_shape)
        super().__init__()

    @property
    def in_event_shape(self) -> tuple[int, ...]:
        """The shape of a value."""
        return self._in_event_shape

    @property
    def out_event_shape(self) -> tuple[int, ...]:
        """The shape of a result."""
        return self._out_event_shape

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(variable.real, len(self._in_event_shape))

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Independent(variable.real, len(self._out_event_shape))

    def _forward(self, x: Tensor) -> Tensor:
        return x.reshape(self._forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self._inverse_shape(y.shape))

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return oar.zeros(x.shape[: x.ndim - len(self._in_event_shape)], x.dtype)

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replace_end(shape, self._in_event_shape, self._out_event_shape)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replace_end(shape, self._out_event_shape, self._in_event_shape)


def _replace_end(shape: Sequence[int], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    start = len(shape) - len(old)
    if start < 0 or tuple(shape[start:]) != old:
        raise ValueError(f"[ReshapeTransform] the shape {list(shape)} does not end with {list(old)}.")
    return (*shape[:start], *new)


class SoftmaxTransform(Transform):
    """The softmax of vectors along the last axis. It is not injective; ``inverse`` returns logarithms.

    Examples:
        >>> import oar
        >>> from oar.distribution import SoftmaxTransform
        >>> SoftmaxTransform().forward(oar.to_tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.26894143, 0.73105860])
    """

    _type = Type.OTHER

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(variable.real, 1)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Variable(False, 1, constraint.simplex)

    def _forward(self, x: Tensor) -> Tensor:
        return oar.nn.functional.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _with_an_axis("SoftmaxTransform", shape)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _with_an_axis("SoftmaxTransform", shape)


def _with_an_axis(owner: str, shape: Sequence[int]) -> Sequence[int]:
    if len(shape) < 1:
        raise ValueError(f"[{owner}] shape must have at least one axis, but got {list(shape)}.")
    return shape


class StackTransform(Transform):
    """A transform for each slice along an axis.

    Args:
        transforms: a sequence of transforms.
        axis: the axis.

    Examples:
        >>> import oar
        >>> from oar.distribution import ExpTransform, StackTransform, TanhTransform
        >>> StackTransform([ExpTransform(), TanhTransform()], -1).forward(oar.to_tensor([[1.0, 1.0]]))
        Tensor(shape=[1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[2.71828175, 0.76159418]])
    """

    def __init__(self, transforms: Sequence[Transform], axis: int = 0) -> None:
        if not transforms or not isinstance(transforms, Sequence):
            raise TypeError(f"[StackTransform] transforms must be a sequence of transforms, but got {transforms!r}.")
        _check_transforms("StackTransform", transforms)
        if not isinstance(axis, int):
            raise TypeError(f"[StackTransform] axis must be an int, but got {type(axis).__name__}.")
        self._transforms = transforms
        self._axis = axis
        super().__init__()

    def _is_injective(self) -> bool:  # type: ignore[override]
        return all(transform._is_injective() for transform in self._transforms)

    @property
    def transforms(self) -> Sequence[Transform]:
        """The transforms."""
        return self._transforms

    @property
    def axis(self) -> int:
        """The axis of the slices."""
        return self._axis

    @property
    def _domain(self) -> variable.Variable:
        return variable.Stack([transform._domain for transform in self._transforms], self._axis)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Stack([transform._codomain for transform in self._transforms], self._axis)

    def _slices(self, value: Tensor) -> list[Tensor]:
        if not -value.ndim <= self._axis < value.ndim:
            raise ValueError(f"[StackTransform] a value of {value.ndim} axes has no axis {self._axis}.")
        if value.shape[self._axis] != len(self._transforms):
            raise ValueError(
                f"[StackTransform] the value has {value.shape[self._axis]} slices along axis {self._axis}, "
                f"but there are {len(self._transforms)} transforms.")  # fmt: skip
        return oar.unstack(value, self._axis)

    def _forward(self, x: Tensor) -> Tensor:
        parts = [transform.forward(part) for transform, part in zip(self._transforms, self._slices(x))]
        return oar.stack(parts, self._axis)

    def _inverse(self, y: Tensor) -> Tensor:
        if not self._is_injective():
            raise ValueError("[StackTransform] not all transforms are injective, so there is no single inverse.")
        parts = [transform.inverse(part) for transform, part in zip(self._transforms, self._slices(y))]
        return oar.stack(parts, self._axis)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        parts = [transform.forward_log_det_jacobian(part) for transform, part in zip(self._transforms, self._slices(x))]
        return oar.stack(oar.broadcast_tensors(parts), self._axis)


class StickBreakingTransform(Transform):
    """Vectors of n numbers as vectors of n + 1 shares of 1: each number says how much of the rest of a stick is broken off.

    Examples:
        >>> import oar
        >>> from oar.distribution import StickBreakingTransform
        >>> StickBreakingTransform().forward(oar.to_tensor([0.0, 0.0]))
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.33333334, 0.33333334, 0.33333334])
    """

    _type = Type.BIJECTION

    @property
    def _domain(self) -> variable.Variable:
        return variable.Independent(variable.real, 1)

    @property
    def _codomain(self) -> variable.Variable:
        return variable.Variable(False, 1, constraint.simplex)

    def _log_breaks(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithms of the shares of the rest that are broken off, and of those that stay."""
        # Shifted, so that zeros break the stick into equal parts.
        size = x.shape[-1]
        shifted = x - oar.arange(size, 0, -1, dtype=x.dtype).log()
        return -oar.nn.functional.softplus(-shifted), -oar.nn.functional.softplus(shifted)

    def _forward(self, x: Tensor) -> Tensor:
        broken, kept = self._log_breaks(x)
        start = oar.zeros([*x.shape[:-1], 1], x.dtype)
        return (oar.concat([start, kept.cumsum(-1)], -1) + oar.concat([broken, start], -1)).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        size = y.shape[-1] - 1
        left = 1 - y[..., :size].cumsum(-1)
        return y[..., :size].log() - left.log() + oar.arange(size, 0, -1, dtype=y.dtype).log()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        broken, kept = self._log_breaks(x)
        size = x.shape[-1]
        # Share i is the break i times what stayed before it: a triangular derivative.
        before = oar.arange(size, 0, -1, dtype=x.dtype)
        return (broken + before * kept).sum(-1)

    def _forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _with_an_axis("StickBreakingTransform", shape)
        return (*shape[:-1], shape[-1] + 1)

    def _inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        shape = _with_an_axis("StickBreakingTransform", shape)
        return (*shape[:-1], shape[-1] - 1)
