"""Sparse tensors from index vectors and values."""

from __future__ import annotations

from typing import Any

import oar
from oar import _C
from oar._C import Tensor, ops

__all__ = ["sparse_coo_tensor", "sparse_csr_tensor"]

_INDEX_DTYPES = ("int8", "int16", "int32", "int64")


def _index_tensor(data, name: str, op: str, rank: int) -> Tensor:
    t = data if isinstance(data, Tensor) else oar.to_tensor(data)
    if t.size == 0 and t.dtype.name not in _INDEX_DTYPES:
        t = ops.cast(t, "int64")  # an empty list has no integers
    if t.dtype.name not in _INDEX_DTYPES:
        raise TypeError(f"[{op}] {name} has dtype {t.dtype.name}; it must be one of {', '.join(_INDEX_DTYPES)}.")
    if t.ndim != rank:
        raise ValueError(f"[{op}] {name} has shape {list(t.shape)}; it must be {rank}-D.")
    return t


def _values_tensor(data, dtype, place, stop_gradient: bool) -> Tensor:
    """With the history of a tensor that the user passes, unless gradients stop."""
    dtype = dtype or None  # callers of Paddle pass False, too
    t = data if isinstance(data, Tensor) else oar.to_tensor(data, dtype, place)
    if stop_gradient:
        t = t.detach()
    elif t.stop_gradient:
        t.stop_gradient = False  # as in Paddle, that of the user's tensor
    if dtype is not None and t.dtype != _C.dtype(dtype):
        t = ops.cast(t, dtype)
    return t if place is None else t.to(device=place)


def sparse_coo_tensor(
    indices: Any, values: Any, shape: Any = None, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """A sparse tensor from coordinates and values; all other elements are zero. Values of one place are summed when it is
    used.

    Args:
        indices: the coordinates, one row per sparse axis and one column per element.
        values: the elements. Axes after the first are dense axes of the tensor; those of size 1 at the end may be missing.
        shape: the sizes; None takes the smallest that hold all elements.
        dtype: the dtype of the values; None takes theirs.
        place: the device; None takes that of the values.
        stop_gradient: whether gradients end here.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> oar.sparse.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, 2.0, 3.0], [3, 3])
        Tensor(shape=[3, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               indices=[[0, 1, 2],
                        [1, 2, 0]],
               values=[1., 2., 3.])
    """
    at = _index_tensor(indices, "indices", "sparse_coo_tensor", 2)
    held = _values_tensor(values, dtype, place, stop_gradient)
    if at.shape[1] != (held.shape[0] if held.ndim else 1):
        raise ValueError(
            f"[sparse_coo_tensor] indices of shape {list(at.shape)} have {at.shape[1]} columns and values of shape "
            f"{list(held.shape)} {held.shape[0] if held.ndim else 'no axis'}; there must be one of each per element."
        )
    if shape is None:
        if at.shape[1] == 0:
            raise ValueError("[sparse_coo_tensor] without elements there is no smallest shape; pass `shape`.")
        shape = [int(size) + 1 for size in ops.max(at, [1]).tolist()] + list(held.shape[1:])
    shape = shape.tolist() if isinstance(shape, Tensor) else list(shape)
    return _C.sparse_coo(at, _with_dense_axes(held, shape[at.shape[0]:]), shape, False, False)


def _with_dense_axes(values: Tensor, sizes: list[int]) -> Tensor:
    """Values whose axes of size 1 at the end are more or fewer than those of the shape get those of the shape."""
    wide, narrow = (sizes, values.shape[1:]) if len(sizes) > values.ndim - 1 else (values.shape[1:], sizes)
    if values.ndim == 0 or list(wide) != [*narrow, *[1] * (len(wide) - len(narrow))]:
        return values
    return values if len(wide) == len(narrow) else ops.reshape(values, [values.shape[0], *sizes])


def _smallest_csr_shape(crows: Tensor, cols: Tensor) -> list[int]:
    starts = crows.tolist()
    matrices = 1 + sum(a > b for a, b in zip(starts, starts[1:], strict=False))
    if len(starts) % matrices:
        raise ValueError(f"[sparse_csr_tensor] crows falls {matrices - 1} times, so it has {matrices} matrices, and its "
                         f"{len(starts)} entries cannot be divided among them. Pass `shape`.")
    rows, width = len(starts) // matrices - 1, int(ops.max(cols).item()) + 1 if cols.size else 0
    return [rows, width] if matrices == 1 else [matrices, rows, width]


def sparse_csr_tensor(
    crows: Any, cols: Any, values: Any, shape: Any = None, dtype: Any = None, place: Any = None,
    stop_gradient: bool = True,
) -> Tensor:
    """A sparse matrix from compressed rows: the elements of row i are those from crows[i] up to crows[i + 1]. A third axis
    before them is for several matrices; each has its own entries in crows, which begin with 0.

    Args:
        crows: where each row begins, and the number of elements at the end.
        cols: the column of each element, rising in each row.
        values: the elements.
        shape: the sizes; None takes the smallest that hold all elements.
        dtype: the dtype of the values; None takes theirs.
        place: the device; None takes that of the values.
        stop_gradient: whether gradients end here.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> oar.sparse.sparse_csr_tensor([0, 2, 3, 5], [1, 3, 2, 0, 1], [1, 2, 3, 4, 5], [3, 4])
        Tensor(shape=[3, 4], dtype=int64, place=Place(cpu), stop_gradient=True,
               crows=[0, 2, 3, 5],
               cols=[1, 3, 2, 0, 1],
               values=[1, 2, 3, 4, 5])
    """
    starts = _index_tensor(crows, "crows", "sparse_csr_tensor", 1)
    at = _index_tensor(cols, "cols", "sparse_csr_tensor", 1)
    held = _values_tensor(values, dtype, place, stop_gradient)
    if shape is None:
        shape = _smallest_csr_shape(starts, at)
    shape = shape.tolist() if isinstance(shape, Tensor) else list(shape)
    return _C.sparse_csr(starts, at, held, shape, False)
