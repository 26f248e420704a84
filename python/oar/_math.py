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
    """The bits of x moved up by y places.

    Args:
        x: the input.
        y: the second input.
        is_arithmetic: whether the sign bit is copied.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.bitwise_left_shift(oar.to_tensor([1, 3]), oar.to_tensor([2, 1]))
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [4, 6])
    """
    return _into(out, ops.bitwise_left_shift(x, y, is_arithmetic))


def bitwise_right_shift(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                        name: str | None = None) -> Tensor:
    """The bits of x moved down by y places; copies of the sign bit move in, or zeros if not arithmetic.

    Args:
        x: the input.
        y: the second input.
        is_arithmetic: whether the sign bit is copied.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.bitwise_right_shift(oar.to_tensor([8, -8]), oar.to_tensor([2, 2]))
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [ 2, -2])
    """
    return _into(out, ops.bitwise_right_shift(x, y, is_arithmetic))


def bitwise_left_shift_(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                        name: str | None = None) -> Tensor:
    """bitwise_left_shift that writes x.

    Args:
        x: the input.
        y: the second input.
        is_arithmetic: whether the sign bit is copied.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1, 3])
        >>> oar.bitwise_left_shift_(x, oar.to_tensor([2, 1]))
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [4, 6])
    """
    return _into(out, ops.bitwise_left_shift_(x, y, is_arithmetic))


def bitwise_right_shift_(x: Tensor, y: Tensor, is_arithmetic: bool = True, out: Tensor | None = None,
                         name: str | None = None) -> Tensor:
    """bitwise_right_shift that writes x.

    Args:
        x: the input.
        y: the second input.
        is_arithmetic: whether the sign bit is copied.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([8, -8])
        >>> oar.bitwise_right_shift_(x, oar.to_tensor([2, 2]))
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [ 2, -2])
    """
    return _into(out, ops.bitwise_right_shift_(x, y, is_arithmetic))


def add_n(inputs, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape; of one tensor, a copy.

    Args:
        inputs: the tensors to add.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.add_n([oar.to_tensor([1.0]), oar.to_tensor([2.0]), oar.to_tensor([3.0])])
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [6.])
    """
    return ops.add_n([inputs] if isinstance(inputs, Tensor) else list(inputs))


def increment(x: Tensor, value: float = 1.0, name: str | None = None) -> Tensor:
    """Adds a number to a tensor of one element, in place.

    Args:
        x: the input.
        value: what is added.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0])
        >>> _ = oar.increment(x, 2.0)
        >>> x
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [3.])
    """
    if x.size != 1:
        raise ValueError(f"[increment] x of shape {list(x.shape)} must have one element.")
    step = ops.full([], value, x.dtype)
    if _C.static_active():  # A program's x has the sum from here on, too.
        return ops.copy_into(x, ops.add(x, step))
    return ops.add_(x, step)


def cast_(x: Tensor, dtype) -> Tensor:
    """Converts x itself to another dtype.

    Args:
        x: the input.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.7])
        >>> _ = oar.cast_(x, 'int64')
        >>> x
        Tensor(shape=[1], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1])
    """
    x._become(ops.cast(x, dtype))
    return x


def tolist(x: Tensor) -> list:
    """The elements as nested lists.

    Args:
        x: the input.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> oar.tolist(oar.to_tensor([[1, 2], [3, 4]]))
        [[1, 2], [3, 4]]
    """
    return x.tolist()


def broadcast_shape(x_shape, y_shape) -> list[int]:
    """The shape that two shapes are broadcast to.

    Args:
        x_shape: the first shape.
        y_shape: the second shape.

    Examples:
        >>> import oar
        >>> oar.broadcast_shape([2, 1, 3], [4, 1])
        [2, 4, 3]
    """
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
    """Sums of products over pairs of axes: over the last ``axes`` of x and the first ones of y, or over those named.

    Args:
        x: the input.
        y: the second input.
        axes: the number of axes, or two lists of axes.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.tensordot(oar.ones([2, 3, 4]), oar.ones([3, 4, 5]), axes=2).shape
        [2, 5]
    """
    return ops.tensordot_axes(x, y, *_axis_pairs(x, y, axes))


def _pair_places(n: int):
    import numpy
    rows, columns = numpy.triu_indices(n, 1)
    return _C.make_tensor(rows, "int64"), _C.make_tensor(columns, "int64")


def pdist(x: Tensor, p: float = 2.0, name: str | None = None) -> Tensor:
    """The p-norm distances of all pairs of rows of a matrix.

    Args:
        x: the input.
        p: the p of the norm.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.pdist(oar.to_tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [5.        , 1.        , 4.24264050])
    """
    if x.ndim != 2:
        raise ValueError(f"[pdist] x of shape {list(x.shape)} must be a matrix.")
    first, second = _pair_places(x.shape[0])
    difference = ops.index_select(x, first, 0) - ops.index_select(x, second, 0)
    return ops.p_norm(difference, float(p), [-1])
