"""Rearranging and indexing tensors: Paddle's looser argument forms over the ops."""

from __future__ import annotations

import builtins
import itertools
import math

from oar import _C
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar._reshaped import cumsum_, flatten_, reshape_, squeeze_, t_, transpose_, unsqueeze_
from oar._spelling import spelled

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "clip", "clip_", "combinations", "cumsum_", "flatten_", "meshgrid",
    "repeat_interleave", "reshape_", "reverse", "squeeze_", "t", "t_", "transpose_", "tril_indices",
    "triu_indices", "unsqueeze_", "view", "where", "where_",
]


@spelled
def repeat_interleave(x: Tensor, repeats, axis: int | None = None, name: str | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each slice along an axis several times in a row; ``repeats`` is one number or one per slice.

    Args:
        x: the input.
        repeats: how often: one number, or one per slice.
        axis: the axis to work along; a negative one counts from the end.
        output_size: accepted for compatibility: the size of the result follows from ``repeats``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.repeat_interleave(oar.to_tensor([1, 2]), 2)
        Tensor(shape=[4], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 1, 2, 2])
        >>> oar.repeat_interleave(oar.to_tensor([1, 2]), oar.to_tensor([1, 3]))
        Tensor(shape=[4], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1, 2, 2, 2])
    """
    if isinstance(repeats, Tensor):
        return ops.repeat_interleave_by(x, repeats if repeats.ndim else repeats.reshape([1]), axis)
    return ops.repeat_interleave(x, repeats, axis)


def _at_least(op, shape: str):
    """The function around an op that takes a list; ``shape`` is that of a number, for the example."""

    def function(*inputs, name: str | None = None):
        tensors = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
        results = op([x if isinstance(x, Tensor) else _C.make_tensor(x, None) for x in tensors])
        return results[0] if len(tensors) == 1 else results

    function.__name__ = function.__qualname__ = op.__name__
    function.__doc__ = f"""One tensor, or a list of several, with axes added up to that rank.

    Args:
        inputs: tensors, arrays or numbers.

    Returns:
        a tensor where one is given, else a list.

    Examples:
        >>> import oar
        >>> oar.{op.__name__}(oar.to_tensor(5.0)).shape
        {shape}
    """
    return function


atleast_1d = _at_least(ops.atleast_1d, "[1]")
atleast_2d = _at_least(ops.atleast_2d, "[1, 1]")
atleast_3d = _at_least(ops.atleast_3d, "[1, 1, 1]")


def meshgrid(*args, **kwargs) -> list[Tensor]:
    """The coordinates of a grid: vector i spread along axis i. Takes vectors, or one list of them.

    Args:
        args: vectors, or one list of them.
        kwargs: ``indexing``: ``'ij'``, which is the default, or ``'xy'``, which swaps the first two axes as NumPy does.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> x, y = oar.meshgrid(oar.to_tensor([1, 2]), oar.to_tensor([10, 20, 30]))
        >>> x
        Tensor(shape=[2, 3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1, 1, 1],
                [2, 2, 2]])
        >>> y.shape
        [2, 3]
    """
    kwargs.pop("name", None)
    indexing = kwargs.pop("indexing", None)
    if kwargs:
        raise TypeError(f"meshgrid() got an unexpected keyword argument {next(iter(kwargs))!r}.")
    if indexing not in (None, "ij", "xy"):
        raise ValueError(f"[meshgrid] indexing is {indexing!r}; 'ij' and 'xy' are possible.")
    vectors = list(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)
    if indexing != "xy" or len(vectors) < 2:
        return ops.meshgrid(vectors)
    second, first, *rest = ops.meshgrid([vectors[1], vectors[0], *vectors[2:]])
    return [first, second, *rest]


@spelled
def combinations(x: Tensor, r: int = 2, with_replacement: builtins.bool = False, name: str | None = None) -> Tensor:
    """Every choice of r elements of a vector, in order, as rows.

    Args:
        x: the input.
        r: how many elements per choice.
        with_replacement: whether an element may be chosen more than once.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.combinations(oar.to_tensor([1, 2, 3]))
        Tensor(shape=[3, 2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1, 2],
                [1, 3],
                [2, 3]])
    """
    if x.ndim != 1:
        raise _C.ArgumentTypeError(f"[combinations] x must be a vector, but its shape is {list(x.shape)}.")
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"[combinations] r must be an integer that is not negative, not {r!r}.")
    if r == 0:
        return ops.zeros([0], x.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = _C.make_tensor([list(choice) for choice in choose(range(x.shape[0]), r)], "int64")
    return ops.reshape(ops.index_select(x, ops.reshape(places, [-1]), 0), [-1, r]) if places.size else ops.zeros(
        [0, r], x.dtype)


def t(input: Tensor, name: str | None = None) -> Tensor:
    """A matrix transposed; vectors and numbers are returned unchanged. A view.

    Args:
        input: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.t(oar.to_tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1, 3],
                [2, 4]])
    """
    if input.ndim > 2:
        raise ValueError(f"[t] input has shape {list(input.shape)}; t takes matrices, vectors and numbers.\n"
                         "hint: Use transpose, which takes the order of the axes.")
    return ops.transpose(input, list(range(input.ndim))[::-1])


def reverse(x: Tensor, axis, name: str | None = None) -> Tensor:
    """``flip`` under its old name.

    Args:
        x: the input.
        axis: the axis to work along; a negative one counts from the end.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.reverse(oar.to_tensor([1, 2, 3]), axis=0)
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [3, 2, 1])
    """
    return ops.flip(x, axis)


@spelled
def view(x: Tensor, shape_or_dtype, name: str | None = None) -> Tensor:
    """The same elements under another shape; or, given a dtype, the same bytes as elements of that dtype (a copy).

    Args:
        x: the input.
        shape_or_dtype: a shape, or a dtype.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.view(oar.to_tensor([1.0, 2.0, 3.0, 4.0]), [2, 2])
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 2.],
                [3., 4.]])
        >>> oar.view(oar.to_tensor([1.0]), 'int32')
        Tensor(shape=[1], dtype=int32, place=Place(cpu), stop_gradient=True,
               [1065353216])
    """
    if isinstance(shape_or_dtype, (list, tuple, int)):
        return ops.reshape(x, shape_or_dtype)
    return ops.bitcast(x, shape_or_dtype)


def _triangle_indices(op: str, rows: int, columns: int, offset: int, keeps, dtype) -> Tensor:
    if not all(isinstance(size, int) and size >= 0 for size in (rows, columns)):
        raise TypeError(f"[{op}] row and col should be non-negative integers, not {rows!r} and {columns!r}.")
    if not isinstance(offset, int):
        raise TypeError(f"[{op}] offset should be an integer, not {offset!r}.")
    i, j = ops.meshgrid([ops.range(0, rows, 1, "int64"), ops.range(0, columns, 1, "int64")])
    places = ops.nonzero(keeps(j - i))
    return ops.cast(ops.assign(ops.transpose(places, [1, 0])), dtype)


def tril_indices(row: int, col: int | None = None, offset: int = 0, dtype="int64") -> Tensor:
    """[2, n] positions on and below a diagonal of a matrix.

    Args:
        row: the number of rows.
        col: the number of columns; as many as rows if None.
        offset: which diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.tril_indices(2)
        Tensor(shape=[2, 3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[0, 1, 1],
                [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", row, row if col is None else col, offset, lambda d: d <= offset, dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype="int64") -> Tensor:
    """[2, n] positions on and above a diagonal of a matrix.

    Args:
        row: the number of rows.
        col: the number of columns; as many as rows if None.
        offset: which diagonal: 0 is the main one, positive ones are above it.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.triu_indices(2)
        Tensor(shape=[2, 3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[0, 0, 1],
                [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, row if col is None else col, offset, lambda d: d >= offset, dtype)


@spelled
def where(condition: Tensor, x=None, y=None, name: str | None = None):
    """x where the condition holds, else y; without them, one tensor of positions per axis where it holds.

    Args:
        condition: a bool tensor.
        x: what is taken where the condition holds.
        y: what is taken where the condition does not hold.

    Examples:
        >>> import oar
        >>> oar.where(oar.to_tensor([True, False]), oar.to_tensor([1, 2]), oar.to_tensor([10, 20]))
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1 , 20])
        >>> oar.where(oar.to_tensor([True, False, True]))[0].tolist()
        [0, 2]
    """
    if x is None and y is None:
        places = ops.nonzero(condition)
        return tuple(places[:, i] for i in range(condition.ndim))
    if x is None or y is None:
        raise ValueError("[where] either both or none of x and y must be given.")
    return ops.where(condition, x, y)


@spelled
def where_(condition: Tensor, x=None, y=None, name: str | None = None) -> Tensor:
    """Writes y into x where the condition does not hold.

    Args:
        condition: a bool tensor.
        x: the tensor to change.
        y: what is written where the condition does not hold.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1, 2])
        >>> _ = oar.where_(oar.to_tensor([True, False]), x, oar.to_tensor([10, 20]))
        >>> x
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [1 , 20])
    """
    return ops.copy_into(x, ops.where(condition, x, y))


def _bounded(x: Tensor, low, high) -> Tensor:
    for bound, op in ((low, ops.maximum), (high, ops.minimum)):
        if bound is not None:
            x = op(x, ops.cast(bound, x.dtype) if isinstance(bound, Tensor) else bound)
    return x


@spelled
def clip(x: Tensor, min=None, max=None, name: str | None = None) -> Tensor:
    """x limited to [min, max]; None leaves a side open. Bounds may be tensors, which broadcast. Integers become
    floats where a bound is one.

    Args:
        x: the input.
        min: the lower bound, or None.
        max: the upper bound, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.clip(oar.to_tensor([-2.0, 0.5, 9.0]), 0.0, 1.0)
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.50000000, 1.        ])
    """
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _bounded(x, min, max)
    if (isinstance(min, float) or isinstance(max, float)) and isinstance(x, Tensor) and "int" in x.dtype.name:
        x = ops.cast(x, _C.get_default_dtype())
    return ops.clip(x, min, max)


@spelled
def clip_(x: Tensor, min=None, max=None, name: str | None = None) -> Tensor:
    """``clip`` in place. Bounds of integers lose their fractions.

    Args:
        x: the input.
        min: the lower bound, or None.
        max: the upper bound, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([-2.0, 0.5, 9.0])
        >>> oar.clip_(x, 0.0, 1.0)
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.50000000, 1.        ])
    """
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        bounded = _bounded(x, min, max)
        return ops.copy_into(x, bounded) if in_dynamic_mode() else bounded
    if "int" in x.dtype.name:
        min, max = (int(b) if isinstance(b, float) and math.isfinite(b) else b for b in (min, max))
    return ops.clip_(x, min, max)


_METHODS = set(__all__) - {"meshgrid", "tril_indices", "triu_indices", "where", "where_"}
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])


def _as_method(function):
    def method(self, x=None, y=None, name=None):
        return function(self, x, y)

    method.__doc__ = function.__doc__
    return method


setattr(Tensor, "where", _as_method(where))
setattr(Tensor, "where_", _as_method(where_))
for _name in ("concat", "stack", "block_diag", "scatter_nd", "broadcast_tensors"):
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, getattr(ops, _name))
