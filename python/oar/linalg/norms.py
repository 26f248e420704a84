"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oar._C import Tensor, ops
from oar._spelling import spelled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@spelled
def vector_norm(x: Tensor, p: float = 2.0, axis: int | Sequence[int] | None = None, keepdim: bool = False,
                name: str | None = None, *, dtype: Any = None) -> Tensor:
    """sum(|x|^p)^(1/p) over axes (over all, without one): p = 0 counts, infinity takes the largest magnitude.

    Args:
        x: the input.
        p: the p of the norm.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        dtype: the dtype that x is cast to first; None keeps it.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.vector_norm(oar.to_tensor([3.0, 4.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               5.)
    """
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ValueError(f"[vector_norm] p is {p!r}; it must be a number.")
    axes = axis if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return ops.p_norm(x if dtype is None else ops.cast(x, dtype), float(p), axes, keepdim)


@spelled
def matrix_norm(x: Tensor, p: float | str = "fro", axis: Sequence[int] = [-2, -1], keepdim: bool = False,
                name: str | None = None) -> Tensor:
    """A norm of the matrices in two axes: 'fro' of all elements, 1 (inf) the largest sum of magnitudes in a column
    (row), -1 (-inf) the smallest; 2 (-2) the largest (smallest) singular value, 'nuc' the sum of all.

    Args:
        x: the input.
        p: the p of the norm.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.matrix_norm(oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]), p=1)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               6.)
    """
    axes: Sequence[int] = axis if isinstance(axis, (list, tuple)) else ()
    if len(axes) != 2:
        raise ValueError(f"[matrix_norm] axis is {axis!r}; a matrix has two axes.")
    rank = x.ndim
    rows, columns = (a % rank if -rank <= a < rank else a for a in axes)
    if not (0 <= rows < rank and 0 <= columns < rank) or rows == columns:
        raise ValueError(f"[matrix_norm] axis {axis!r} does not name two axes of a tensor of rank {rank}.")
    if p == "fro":
        return ops.p_norm(x, 2.0, [rows, columns], keepdim)
    if p == "nuc" or p in (2, -2):
        values = ops.svdvals(ops.moveaxis(x, [rows, columns], [-2, -1]))
        out = ops.sum(values, [-1]) if p == "nuc" else ops.max(values, [-1]) if p == 2 else ops.min(values, [-1])
        return ops.unsqueeze(out, sorted([rows, columns])) if keepdim else out
    if p not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"[matrix_norm] p is {p!r}; it can be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    summed, chosen = (rows, columns) if abs(p) == 1 else (columns, rows)
    sums = ops.sum(ops.abs(x), [summed], None, True)
    out = (ops.max if p > 0 else ops.min)(sums, [chosen], True)
    return out if keepdim else ops.squeeze(out, [rows, columns])


@spelled
def norm(x: Tensor, p: float | str | None = None, axis: int | Sequence[int] | None = None, keepdim: bool = False,
         out: Tensor | None = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """vector_norm if axis is None or one axis, matrix_norm if it is two.

    Args:
        x: the input.
        p: the p of the norm.
        axis: the axis to work along; a negative one counts from the end.
        keepdim: whether reduced axes stay, with size 1.
        out: a tensor to write to, or None.
        dtype: the dtype in which the norm is computed; None is that of x.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.norm(oar.to_tensor([[3.0, 4.0], [0.0, 5.0]]), axis=1)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [5., 5.])
    """
    if dtype is not None:
        x = ops.cast(x, dtype)
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    if axis is None or isinstance(axis, int):
        made = vector_norm(x, 2.0 if p is None or p == "fro" else p, axis, keepdim)  # type: ignore[arg-type]
    elif len(axis) == 2:
        made = matrix_norm(x, "fro" if p is None else p, axis, keepdim)
    else:
        raise ValueError(f"[norm] axis is {axis!r}; it can name one axis or two.")
    return made if out is None else ops.copy_into(out, made)
