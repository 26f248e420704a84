"""Shapes changed in place: the tensor itself becomes the result."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._spelling import spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["cumsum_", "flatten_", "reshape_", "squeeze_", "t_", "transpose_", "unsqueeze_"]


def become(x: Tensor, view: Callable[..., Tensor], *args: Any) -> Tensor:
    """Makes a tensor the result of a function of it; a leaf that requires a gradient is an error.

    Args:
        x: the tensor.
        view: the function.
        args: its other arguments.

    Returns:
        the tensor.
    """
    if _C.is_grad_enabled() and not x.stop_gradient and x.is_leaf:
        raise _C.ArgumentValueError(f"[{view.__name__}_] a leaf that requires a gradient cannot change in place.\n"
                                    f"hint: Use {view.__name__}, or x.detach().")
    x._become(view(x, *args))
    x._bump_inplace_version()  # as in Paddle, a write, though the elements stay
    return x


@spelled
def cumsum_(x: Tensor, axis: int | None = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """``cumsum`` in place: sums of the elements up to each one. Without an axis, x becomes a vector.

    Args:
        x: the tensor to change.
        axis: the axis to sum along; None takes all elements in order.
        dtype: the dtype to sum in; None is that of x.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.cumsum_(axis=1).tolist()
        [[1.0, 3.0], [3.0, 7.0]]
        >>> x.cumsum_().tolist()
        [1.0, 4.0, 7.0, 14.0]
    """
    if axis is None and x.ndim != 1:
        return become(x, ops.cumsum, None, dtype)
    return ops.cumsum_(x, axis, dtype)


@spelled
def flatten_(x: Tensor, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Tensor:
    """``flatten`` in place: neighbouring axes become one.

    Args:
        x: the tensor to change.
        start_axis: the first of them.
        stop_axis: the last of them.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 1, 3])
        >>> _ = x.flatten_()
        >>> x.shape
        [6]
    """
    return become(x, ops.flatten, start_axis, stop_axis)


@spelled
def reshape_(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """``reshape`` in place: the elements in another shape.

    Args:
        x: the tensor to change.
        shape: the new shape; one size may be -1.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 1, 3])
        >>> _ = x.reshape_([3, 2])
        >>> x.shape
        [3, 2]
    """
    return become(x, ops.reshape, shape)


@spelled
def squeeze_(x: Tensor, axis: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """``squeeze`` in place: without axes of size 1.

    Args:
        x: the tensor to change.
        axis: the axes to remove; None removes all of size 1.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 1, 3])
        >>> _ = x.squeeze_(1)
        >>> x.shape
        [2, 3]
    """
    return become(x, ops.squeeze, axis)


def t_(input: Tensor, name: str | None = None) -> Tensor:
    """``t`` in place: the matrix is transposed.

    Args:
        input: the tensor to change.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 3])
        >>> _ = x.t_()
        >>> x.shape
        [3, 2]
    """
    from oar._layout import t

    return become(input, t)


@spelled
def transpose_(x: Tensor, perm: int | Sequence[int], name: str | None = None) -> Tensor:
    """``transpose`` in place: the axes in another order.

    Args:
        x: the tensor to change.
        perm: the old axes in their new order.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 1, 3])
        >>> _ = x.transpose_([2, 0, 1])
        >>> x.shape
        [3, 2, 1]
    """
    return become(x, ops.transpose, perm, name)  # in PyTorch the second axis stands where the name is


@spelled
def unsqueeze_(x: Tensor, axis: int | Sequence[int], name: str | None = None) -> Tensor:
    """``unsqueeze`` in place: with new axes of size 1.

    Args:
        x: the tensor to change.
        axis: where they are in the result.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 1, 3])
        >>> _ = x.unsqueeze_(0)
        >>> x.shape
        [1, 2, 1, 3]
    """
    return become(x, ops.unsqueeze, axis)
