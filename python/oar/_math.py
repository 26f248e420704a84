"""Skins of the math ops: Paddle's looser argument forms, results that depend on flags, writes to ``out``."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops

__all__ = ["add_n", "bitwise_left_shift", "bitwise_left_shift_", "bitwise_right_shift", "bitwise_right_shift_",
           "broadcast_shape", "cast_", "increment", "pdist", "tensordot", "tolist"]
TENSOR_METHODS = ["add_n", "bitwise_left_shift", "bitwise_left_shift_", "bitwise_right_shift", "bitwise_right_shift_",
                  "cast_", "increment", "tensordot"]


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else ops.copy_into(out, result)


def bitwise_left_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                       name: str | None = None) -> Tensor:
    """The bits of x moved up by y places."""
    return _into(out, ops.bitwise_left_shift(x, y, is_arithmetic))


def bitwise_right_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                        name: str | None = None) -> Tensor:
    """The bits of x moved down by y places, behind copies of the sign, or behind zeros where not arithmetic."""
    return _into(out, ops.bitwise_right_shift(x, y, is_arithmetic))


def bitwise_left_shift_(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                        name: str | None = None) -> Tensor:
    """bitwise_left_shift that writes x."""
    return _into(out, ops.bitwise_left_shift_(x, y, is_arithmetic))


def bitwise_right_shift_(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                         name: str | None = None) -> Tensor:
    """bitwise_right_shift that writes x."""
    return _into(out, ops.bitwise_right_shift_(x, y, is_arithmetic))


def add_n(inputs, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape; of one tensor, a copy."""
    return ops.add_n([inputs] if isinstance(inputs, Tensor) else list(inputs))


def increment(x: Tensor, value: float = 1.0, name: str | None = None) -> Tensor:
    """Adds a number to a tensor of one element, in place."""
    if x.size != 1:
        raise ValueError(f"[increment] x of shape {list(x.shape)} must have one element.")
    step = ops.full([], value, x.dtype)
    if _C.static_active():  # A program's x has the sum from here on, too.
        return ops.copy_into(x, ops.add(x, step))
    return ops.add_(x, step)


def cast_(x: Tensor, dtype) -> Tensor:
    """Converts x itself to another dtype."""
    x._become(ops.cast(x, dtype))
    return x


def tolist(x: Tensor) -> list:
    """The elements as nested lists."""
    return x.tolist()


def broadcast_shape(x_shape, y_shape) -> list[int]:
    """The shape that two shapes are broadcast to."""
    xs, ys = list(x_shape), list(y_shape)
    rank = max(len(xs), len(ys))
    xs, ys = [1] * (rank - len(xs)) + xs, [1] * (rank - len(ys)) + ys
    for a, b in zip(xs, ys):
        if a != b and 1 not in (a, b):
            raise ValueError(f"[broadcast_shape] the shapes {list(x_shape)} and {list(y_shape)} do not fit: {a} and {b}.")
    return [b if a == 1 else a for a, b in zip(xs, ys)]


def _axis_pairs(x: Tensor, y: Tensor, axes) -> tuple[list[int], list[int]]:
    """Paddle's forms: a number of axes, one list for both tensors, a list for each, or these as tensors."""
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ValueError(f"[tensordot] axes is {axes}, but x has {x.ndim} axes and y {y.ndim}.")
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    parts = [p.tolist() if isinstance(p, Tensor) else p for p in axes]
    if all(isinstance(p, int) for p in parts):
        return list(parts), list(parts)
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"[tensordot] axes holds {len(parts)} lists; one or two are possible.")
    lists = [[p] if isinstance(p, int) else list(p) for p in parts]
    first, second = lists[0], lists[-1]
    # What one list lacks is taken from the other.
    return first + second[len(first):], second + first[len(second):]


def tensordot(x: Tensor, y: Tensor, axes=2, name: str | None = None) -> Tensor:
    """Sums of products over pairs of axes: over the last ``axes`` of x and the first ones of y, or over those named."""
    return ops.tensordot_axes(x, y, *_axis_pairs(x, y, axes))


def _pair_places(n: int):
    import numpy
    rows, columns = numpy.triu_indices(n, 1)
    return _C.make_tensor(rows, "int64"), _C.make_tensor(columns, "int64")


def pdist(x: Tensor, p: float = 2.0, name: str | None = None) -> Tensor:
    """The p-norm distances of all pairs of rows of a matrix."""
    if x.ndim != 2:
        raise ValueError(f"[pdist] x of shape {list(x.shape)} must be a matrix.")
    first, second = _pair_places(x.shape[0])
    difference = ops.index_select(x, first, 0) - ops.index_select(x, second, 0)
    return ops.p_norm(difference, float(p), [-1])
