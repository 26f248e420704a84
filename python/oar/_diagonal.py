"""Writing diagonals: methods of Tensor."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops


def fill_diagonal_(x: Tensor, value, offset: int = 0, wrap: bool = False, name: str | None = None) -> Tensor:
    """Writes one value on the diagonal of a matrix, ``offset`` columns to the right of the main one; with ``wrap`` the
    diagonal of a tall matrix starts again below. With more axes, which must have equal sizes, the elements x[i, i, …].

    Args:
        x: the input.
        value: the value.
        offset: which diagonal: 0 is the main one, positive ones are above it.
        wrap: whether the diagonal starts again below in tall matrices.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 3])
        >>> x.fill_diagonal_(5.0)
        Tensor(shape=[2, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[5., 0., 0.],
                [0., 5., 0.]])
    """
    sizes = list(x.shape)
    if x.ndim < 2:
        raise ValueError(f"[fill_diagonal_] x of shape {sizes} must have at least two axes.")
    if x.ndim > 2 and len(set(sizes)) > 1:
        raise ValueError(f"[fill_diagonal_] with more than two axes all sizes must be equal, not {sizes}.")
    columns, step = sizes[1], 1
    for size in sizes[:0:-1]:
        step = step * size + 1
    end = x.size if wrap or x.ndim > 2 else min(x.size, columns * columns)
    places = [i + offset for i in range(0, end, step) if 0 <= i % columns + offset < columns]
    if not places:
        return x
    number = value if isinstance(value, Tensor) else ops.full([], value, x.dtype)
    flat = ops.index_fill(ops.reshape(x, [-1]), _C.make_tensor(places, "int64"), 0, number)
    return ops.copy_into(x, ops.reshape(flat, sizes))


def fill_diagonal_tensor(
    x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> Tensor:
    """A copy of x whose diagonal of two axes, as ``diagonal`` gives it, is y.

    Args:
        x: the input.
        y: the new diagonal.
        offset: which diagonal: 0 is the main one, positive ones are above it.
        dim1: the first axis of the diagonal.
        dim2: the second axis of the diagonal.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 2]).fill_diagonal_tensor(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 0.],
                [0., 2.]])
    """
    return ops.diagonal_scatter(x, y, offset, dim1, dim2)


def fill_diagonal_tensor_(
    x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, name: str | None = None
) -> Tensor:
    """Writes y on the diagonal of two axes.

    Args:
        x: the input.
        y: the new diagonal.
        offset: which diagonal: 0 is the main one, positive ones are above it.
        dim1: the first axis of the diagonal.
        dim2: the second axis of the diagonal.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 2])
        >>> x.fill_diagonal_tensor_(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 0.],
                [0., 2.]])
    """
    return ops.copy_into(x, ops.diagonal_scatter(x, y, offset, dim1, dim2))


for _function in (fill_diagonal_, fill_diagonal_tensor, fill_diagonal_tensor_):
    setattr(Tensor, _function.__name__, _function)
