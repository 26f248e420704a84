"""Parts of tensors, orders of axes and elements, and sums at places, as PyTorch has them."""

from __future__ import annotations

from oar._C import ArgumentValueError, Tensor, ops
from oar._spelling import spelled, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["argwhere", "msort", "narrow", "permute", "put_along_axis", "put_along_axis_", "ravel", "scatter_add", "scatter_add_",
           "scatter_reduce"]  # fmt: skip


def argwhere(input: Tensor) -> Tensor:
    """Where a tensor is not zero: a row of indices for each such element.

    Args:
        input: the tensor.

    Returns:
        a tensor [n, rank] of int64.

    Examples:
        >>> import oar
        >>> oar.argwhere(oar.to_tensor([[0, 3], [4, 0]])).tolist()
        [[0, 1], [1, 0]]
    """
    return ops.nonzero(input)


def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tensor sorted along its first axis.

    Args:
        input: the tensor.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.msort(oar.to_tensor([[3, 1], [2, 5]])).tolist()
        [[2, 1], [3, 5]]
    """
    return written(out, ops.sort(input, 0))


def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """A part of an axis. A view.

    Args:
        input: the tensor.
        dim: the axis.
        start: the first place; a negative one counts from the end.
        length: how many places.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.narrow(oar.to_tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2).tolist()
        [[2, 3], [5, 6]]
    """
    if not -input.ndim <= dim < input.ndim:
        raise ArgumentValueError(f"[narrow] there is no axis {dim} in a tensor of shape {list(input.shape)}.")
    size, first = input.shape[dim], int(start)
    if not -size <= first <= size:
        raise ArgumentValueError(f"[narrow] start is {first}, but axis {dim} has size {size}.")
    first += size if first < 0 else 0
    if length < 0 or first + length > size:
        raise ArgumentValueError(f"[narrow] {length} places from {first} on are not within axis {dim}, which has size {size}.")
    return ops.slice(input, [dim], [first], [first + length])


def permute(input: Tensor, dims: int | Sequence[int], *more: int) -> Tensor:
    """The axes in another order. A view.

    Args:
        input: the tensor.
        dims: which axis of the tensor becomes which of the result: a list, or one number for each axis.
        more: the other numbers, if it is no list.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.permute(oar.zeros([2, 3, 4]), [2, 0, 1]).shape, oar.zeros([2, 3]).permute(1, 0).shape
        ([4, 2, 3], [3, 2])
    """
    return ops.transpose(input, [dims, *more] if isinstance(dims, int) else list(dims))


@spelled
def put_along_axis(
    arr: Tensor, indices: Tensor, values: Tensor | float, axis: int, reduce: str = "assign", include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:  # fmt: skip
    """The tensor with values put at places along an axis.

    Args:
        arr: the tensor.
        indices: the places along the axis.
        values: what is put there: a tensor, or a number.
        axis: the axis.
        reduce: ``'assign'``, or how values are combined with what is there: ``'add'``, ``'mul'``, ``'mean'``, ``'amin'`` or
            ``'amax'``.
        include_self: whether what is there takes part.
        broadcast: whether indices and values are broadcast to the shape of the tensor, without the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, places = oar.zeros([2, 3]), oar.to_tensor([[0], [2]])
        >>> oar.put_along_axis(x, places, oar.to_tensor([[5.0], [6.0]]), 1).tolist()
        [[5.0, 0.0, 0.0], [0.0, 0.0, 6.0]]
        >>> oar.put_along_axis(x, places, 7.0, 1).tolist()
        [[7.0, 0.0, 0.0], [0.0, 0.0, 7.0]]
    """
    return ops.put_along_axis(arr, indices, _values(arr, indices, values), axis, reduce, include_self, broadcast)


@spelled
def put_along_axis_(
    arr: Tensor, indices: Tensor, values: Tensor | float, axis: int, reduce: str = "assign", include_self: bool = True,
    broadcast: bool = True,
) -> Tensor:  # fmt: skip
    """put_along_axis that writes arr.

    Args:
        arr: the tensor.
        indices: the places along the axis.
        values: what is put there: a tensor, or a number.
        axis: the axis.
        reduce: how values are combined with what is there.
        include_self: whether what is there takes part.
        broadcast: whether indices and values are broadcast to the shape of the tensor, without the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([3]).put_along_axis_(oar.to_tensor([1]), 7.0, 0).tolist()
        [0.0, 7.0, 0.0]
    """
    return ops.put_along_axis_(arr, indices, _values(arr, indices, values), axis, reduce, include_self, broadcast)


def _values(arr: Tensor, indices: Tensor, values: Tensor | float) -> Tensor:
    if isinstance(values, (int, float)) and isinstance(arr, Tensor) and isinstance(indices, Tensor):
        return ops.full(list(indices.shape), values, arr.dtype)
    return values  # type: ignore[return-value]


def ravel(input: Tensor) -> Tensor:
    """All elements along one axis.

    Args:
        input: the tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.ravel(oar.to_tensor([[1, 2], [3, 4]])).tolist()
        [1, 2, 3, 4]
    """
    return ops.reshape(input, [-1])


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The tensor with elements of another added at places along an axis.

    Args:
        input: the tensor.
        dim: the axis.
        index: the places along the axis, one for each element of src that is added.
        src: what is added.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.scatter_add(oar.zeros([3]), 0, oar.to_tensor([0, 2, 0]), oar.to_tensor([1.0, 2.0, 3.0])).tolist()
        [4.0, 0.0, 2.0]
    """
    return ops.put_along_axis(input, index, _first_elements(src, index), dim, "add", True, False)


def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """scatter_add that writes input.

    Args:
        input: the tensor.
        dim: the axis.
        index: the places along the axis.
        src: what is added.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2]).scatter_add_(0, oar.to_tensor([1, 1]), oar.ones([2])).tolist()
        [0.0, 2.0]
    """
    return ops.put_along_axis_(input, index, _first_elements(src, index), dim, "add", True, False)


_REDUCTIONS = {"sum": "add", "prod": "mul", "mean": "mean", "amin": "amin", "amax": "amax"}


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with elements of another combined with its own at places along an axis.

    Args:
        input: the tensor.
        dim: the axis.
        index: the places along the axis, one for each element of src that is taken.
        src: what is combined.
        reduce: how: ``'sum'``, ``'prod'``, ``'mean'``, ``'amin'`` or ``'amax'``.
        include_self: whether the elements of the tensor at these places take part.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, places = oar.ones([2]), oar.to_tensor([0, 0])
        >>> oar.scatter_reduce(x, 0, places, oar.to_tensor([3.0, 5.0]), 'mean').tolist()
        [3.0, 1.0]
        >>> oar.scatter_reduce(x, 0, places, oar.to_tensor([3.0, 5.0]), 'amax', include_self=False).tolist()
        [5.0, 1.0]
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"[scatter_reduce] reduce must be one of {', '.join(_REDUCTIONS)}, not {reduce!r}.")
    return ops.put_along_axis(input, index, _first_elements(src, index), dim, _REDUCTIONS[reduce], include_self, False)


def _first_elements(src: Tensor, index: Tensor) -> Tensor:
    """The part of src that has a place: src may be larger than index."""
    if list(src.shape) == list(index.shape) or src.ndim != index.ndim:
        return src
    return src[tuple(slice(0, size) for size in index.shape)]


for _name in __all__:
    setattr(Tensor, _name, globals()[_name])
