"""Skins of the math ops: Paddle's looser argument forms, results that depend on flags, writes to ``out``."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._reshaped import become
from oar._spelling import spelled, written

__all__ = ["add_n", "baddbmm", "baddbmm_", "bitwise_left_shift", "bitwise_left_shift_", "bitwise_right_shift", "bitwise_right_shift_",
           "broadcast_shape", "broadcast_shapes", "cast_", "div", "div_", "increment", "pdist", "positive", "softmax", "sub",
           "sub_", "tensordot", "tolist", "true_divide"]
TENSOR_METHODS = ["add_n", "baddbmm", "baddbmm_", "bitwise_left_shift", "bitwise_left_shift_", "bitwise_right_shift",
                  "bitwise_right_shift_", "broadcast_shape", "broadcast_shapes", "cast_", "div", "div_", "increment",
                  "softmax", "sub", "sub_", "tensordot", "true_divide"]


@spelled
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
    return written(out, ops.bitwise_left_shift(x, y, is_arithmetic))


@spelled
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
    return written(out, ops.bitwise_right_shift(x, y, is_arithmetic))


@spelled
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
    return written(out, ops.bitwise_left_shift_(x, y, is_arithmetic))


@spelled
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
    return written(out, ops.bitwise_right_shift_(x, y, is_arithmetic))


def _shifting(shift, swapped: bool):
    def method(self: Tensor, other) -> Tensor:
        if not isinstance(other, (Tensor, int)):
            return NotImplemented
        other = other if isinstance(other, Tensor) else ops.full([], other, self.dtype)
        return shift(other, self) if swapped else shift(self, other)

    return method


for _name, _shift in (("lshift", bitwise_left_shift), ("rshift", bitwise_right_shift)):
    setattr(Tensor, f"__{_name}__", _shifting(_shift, False))
    setattr(Tensor, f"__r{_name}__", _shifting(_shift, True))


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
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if not tensors:
        raise ValueError("[add_n] the list of tensors is empty; at least one tensor is needed.")
    return ops.add_n(tensors)


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
    if not isinstance(x, Tensor):
        raise TypeError(f"[increment] x must be a tensor, not {type(x).__name__}.")
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
    return become(x, ops.cast, dtype)


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


def broadcast_shapes(*shapes) -> list[int]:
    """The shape that several shapes are broadcast to.

    Args:
        shapes: the shapes.

    Examples:
        >>> import oar
        >>> oar.broadcast_shapes([2, 1], [3], [1, 1, 3])
        [1, 2, 3]
    """
    result: list[int] = []
    for shape in shapes:
        result = broadcast_shape(result, shape)
    return result


_ROUNDED = {"floor": ops.floor_divide, "trunc": lambda x, y: _truncated(ops.divide(x, y), x, y)}


def _truncated(quotient: Tensor, x, y) -> Tensor:
    """Of integers, an integer again."""
    dtypes = [operand.dtype for operand in (x, y) if isinstance(operand, Tensor)]
    if "int" not in dtypes[0].name or any(isinstance(operand, float) for operand in (x, y)):
        return ops.trunc(quotient)
    whole = ops.floor_divide(x, y)
    remainder = ops.not_equal(ops.multiply(whole, y), x)
    return ops.where(ops.logical_and(ops.less_than(whole, 0), remainder), ops.add(whole, 1), whole)


@spelled
def div(x: Tensor, y: Tensor, name: str | None = None, *, rounding_mode: str | None = None,
        out: Tensor | None = None) -> Tensor:
    """x divided by y; rounded, if a mode says so.

    Args:
        x: the input.
        y: the second input.
        rounding_mode: ``'floor'`` rounds down, ``'trunc'`` towards zero. None divides exactly, and integers become floats.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x, y = oar.to_tensor([7, -7]), oar.to_tensor([2, 2])
        >>> oar.div(x, y).tolist()
        [3.5, -3.5]
        >>> oar.div(x, y, rounding_mode='floor').tolist(), oar.div(x, y, rounding_mode='trunc').tolist()
        ([3, -4], [3, -3])
    """
    if rounding_mode is None:
        return written(out, ops.divide(x, y))
    if rounding_mode not in _ROUNDED:
        raise ValueError(f"[div] rounding_mode must be 'floor', 'trunc' or None, not {rounding_mode!r}.")
    return written(out, _ROUNDED[rounding_mode](x, y))


@spelled
def div_(x: Tensor, y: Tensor, name: str | None = None, *, rounding_mode: str | None = None) -> Tensor:
    """div that writes x.

    Args:
        x: the input.
        y: the second input.
        rounding_mode: ``'floor'``, ``'trunc'`` or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([7.0, -7.0]).div_(oar.to_tensor([2.0, 2.0]), rounding_mode='trunc').tolist()
        [3.0, -3.0]
    """
    if rounding_mode is None:
        return ops.divide_(x, y)
    return ops.copy_into(x, div(x, y, rounding_mode=rounding_mode))


def true_divide(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``div`` without rounding.

    Args:
        input: the input.
        other: the second input.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.true_divide(oar.to_tensor([7, 3]), oar.to_tensor([2, 2])).tolist()
        [3.5, 1.5]
    """
    return written(out, ops.divide(input, other))


@spelled
def sub(x: Tensor, y: Tensor, name: str | None = None, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
    """x - alpha * y.

    Args:
        x: the input.
        y: the second input.
        alpha: a factor of y.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.sub(oar.to_tensor([5, 3]), oar.to_tensor([1, 1]), alpha=3).tolist()
        [2, 0]
    """
    return written(out, ops.subtract(x, y if alpha == 1 else y * alpha))


@spelled
def sub_(x: Tensor, y: Tensor, name: str | None = None, *, alpha: float = 1) -> Tensor:
    """sub that writes x.

    Args:
        x: the input.
        y: the second input.
        alpha: a factor of y.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([5, 3]).sub_(oar.to_tensor([1, 1]), alpha=3).tolist()
        [2, 0]
    """
    return ops.subtract_(x, y if alpha == 1 else y * alpha)


@spelled
def positive(x: Tensor, name: str | None = None) -> Tensor:
    """x itself.

    Args:
        x: the input, of numbers.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([-1.0])
        >>> oar.positive(x) is x
        True
    """
    if x.dtype.name == "bool":
        raise TypeError("[positive] x is a bool tensor; + is for numbers.")
    return x


def softmax(input: Tensor, dim: int | None = None, dtype=None, *, out: Tensor | None = None) -> Tensor:
    """exp(input) divided by its sum along an axis.

    Args:
        input: the input.
        dim: the axis. None is 0 for tensors of 0, 1 and 3 axes, else 1, as in PyTorch.
        dtype: the dtype of the result; None takes that of the input.
        out: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.softmax(oar.zeros([2, 4]), 1)[0].tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return written(out, ops.softmax(input, dim, dtype))


@spelled
def baddbmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0,
            name: str | None = None) -> Tensor:
    """beta * input + alpha * (x @ y), for batches of matrices.

    Args:
        input: what is added, [b, n, p] or of a shape that broadcasts to it.
        x: the first factor, [b, n, m].
        y: the second factor, [b, m, p].
        beta: a factor of input.
        alpha: a factor of the product.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.baddbmm(oar.ones([1, 2, 2]), oar.ones([1, 2, 3]), oar.ones([1, 3, 2]), beta=2.0, alpha=0.5).tolist()
        [[[3.5, 3.5], [3.5, 3.5]]]
    """
    return input * beta + ops.bmm(x, y) * alpha


@spelled
def baddbmm_(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0,
             name: str | None = None) -> Tensor:
    """baddbmm that writes input.

    Args:
        input: what is added, [b, n, p].
        x: the first factor, [b, n, m].
        y: the second factor, [b, m, p].
        beta: a factor of input.
        alpha: a factor of the product.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.ones([1, 1, 1]).baddbmm_(oar.ones([1, 1, 3]), oar.ones([1, 3, 1])).tolist()
        [[[4.0]]]
    """
    return ops.copy_into(input, baddbmm(input, x, y, beta, alpha))


def _axis_pairs(x: Tensor, y: Tensor, axes) -> tuple[list[int], list[int]]:
    """Paddle's forms: a number of axes, one list for both tensors, a list for each, or these as tensors."""
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise (_C.ArgumentValueError if axes < 0 else IndexError)(f"[tensordot] axes is {axes}, but x has {x.ndim} axes and y {y.ndim}.")
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    parts = [p.tolist() if isinstance(p, Tensor) else p for p in axes]
    if all(isinstance(p, int) for p in parts):
        return list(parts), list(parts)
    if not 1 <= len(parts) <= 2:
        raise _C.ArgumentValueError(f"[tensordot] axes holds {len(parts)} lists; one or two are possible.")
    lists = [[p] if isinstance(p, int) else list(p) for p in parts]
    first, second = lists[0], lists[-1]
    # What one list lacks is taken from the other.
    return first + second[len(first):], second + first[len(second):]


@spelled
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


@spelled
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
        raise _C.ArgumentValueError(f"[pdist] x of shape {list(x.shape)} must be a matrix.")
    first, second = _pair_places(x.shape[0])
    difference = ops.index_select(x, first, 0) - ops.index_select(x, second, 0)
    return ops.p_norm(difference, float(p), [-1])
