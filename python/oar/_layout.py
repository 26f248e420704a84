"""Rearranging, splitting and indexing tensors: Paddle's looser argument forms over the ops."""

from __future__ import annotations

import builtins
import itertools
import math

from oar import _C
from oar._C import Tensor, ops

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "clip", "clip_", "combinations", "dsplit", "flatten_", "hsplit",
    "meshgrid", "repeat_interleave", "reshape_", "reverse", "split", "squeeze_", "t", "t_", "tensor_split",
    "transpose_", "tril_indices", "triu_indices", "unsqueeze_", "view", "vsplit", "where", "where_",
]


def _numbers(given) -> list:
    """A list of ints from a list (whose items may be 0-d tensors) or a tensor."""
    if isinstance(given, Tensor):
        return given.tolist() if given.ndim else [given.item()]
    return [item.item() if isinstance(item, Tensor) else item for item in given]


def split(x: Tensor, num_or_sections, axis: int = 0, name: str | None = None) -> list[Tensor]:
    """Equal parts along an axis, given their number; pieces of the given sizes, given a list. Views."""
    if isinstance(num_or_sections, (list, tuple)) or (isinstance(num_or_sections, Tensor) and num_or_sections.ndim):
        return ops.split_sections(x, _numbers(num_or_sections), axis)
    return ops.split(x, [num_or_sections], axis)


def tensor_split(x: Tensor, num_or_indices, axis: int = 0, name: str | None = None) -> list[Tensor]:
    """Nearly equal parts along an axis, given their number; x cut in front of each index, given a list. Views."""
    if isinstance(num_or_indices, (list, tuple)) or (isinstance(num_or_indices, Tensor) and num_or_indices.ndim):
        return ops.tensor_split_at(x, _numbers(num_or_indices), axis)
    return ops.tensor_split(x, [num_or_indices], axis)


def _split_along(name: str, x: Tensor, num_or_indices, axis: int, rank: int) -> list[Tensor]:
    if x.ndim < rank:
        raise ValueError(f"[{name}] x has shape {list(x.shape)}; {name} needs {rank} axes or more.")
    return tensor_split(x, num_or_indices, axis)


def hsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 1; a vector along its only axis."""
    return _split_along("hsplit", x, num_or_indices, 1 if x.ndim > 1 else 0, 1)


def vsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 0."""
    return _split_along("vsplit", x, num_or_indices, 0, 2)


def dsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 2."""
    return _split_along("dsplit", x, num_or_indices, 2, 3)


def repeat_interleave(x: Tensor, repeats, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each slice along an axis several times in a row; ``repeats`` is one number or one per slice."""
    if isinstance(repeats, Tensor):
        return ops.repeat_interleave_by(x, repeats if repeats.ndim else repeats.reshape([1]), axis)
    return ops.repeat_interleave(x, repeats, axis)


def _at_least(op):
    def function(*inputs, name: str | None = None):
        tensors = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs
        results = op([x if isinstance(x, Tensor) else _C.make_tensor(x, None) for x in tensors])
        return results[0] if len(tensors) == 1 else results

    function.__name__ = function.__qualname__ = op.__name__
    function.__doc__ = "One tensor, or a list of several, with axes added up to that rank."
    return function


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (ops.atleast_1d, ops.atleast_2d, ops.atleast_3d))


def meshgrid(*args, **kwargs) -> list[Tensor]:
    """The coordinates of a grid: vector i spread along axis i. Takes vectors, or one list of them."""
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"meshgrid() got an unexpected keyword argument {next(iter(kwargs))!r}.")
    return ops.meshgrid(list(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args))


def combinations(x: Tensor, r: int = 2, with_replacement: builtins.bool = False, name: str | None = None) -> Tensor:
    """Every choice of r elements of a vector, in order, as rows."""
    if x.ndim != 1:
        raise ValueError(f"[combinations] x must be a vector, but its shape is {list(x.shape)}.")
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"[combinations] r must be an integer that is not negative, not {r!r}.")
    if r == 0:
        return ops.zeros([0], x.dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = _C.make_tensor([list(choice) for choice in choose(range(x.shape[0]), r)], "int64")
    return ops.reshape(ops.index_select(x, ops.reshape(places, [-1]), 0), [-1, r]) if places.size else ops.zeros(
        [0, r], x.dtype)


def t(input: Tensor, name: str | None = None) -> Tensor:
    """A matrix transposed; vectors and numbers as they are. A view."""
    if input.ndim > 2:
        raise ValueError(f"[t] input has shape {list(input.shape)}; t takes matrices, vectors and numbers.\n"
                         "hint: Use transpose, which is told the order of the axes.")
    return ops.transpose(input, list(range(input.ndim))[::-1])


def reverse(x: Tensor, axis, name: str | None = None) -> Tensor:
    """``flip`` under its old name."""
    return ops.flip(x, axis)


def view(x: Tensor, shape_or_dtype, name: str | None = None) -> Tensor:
    """The same elements under another shape; or, given a dtype, the same bytes as elements of that dtype (a copy)."""
    if isinstance(shape_or_dtype, (list, tuple)):
        return ops.reshape(x, shape_or_dtype)
    return ops.bitcast(x, shape_or_dtype)


def _triangle_indices(rows: int, columns: int, keeps, dtype) -> Tensor:
    if rows < 0 or columns < 0:
        raise ValueError(f"row and col must not be negative, but are {rows} and {columns}.")
    i, j = ops.meshgrid([ops.range(0, rows, 1, "int64"), ops.range(0, columns, 1, "int64")])
    places = ops.nonzero(keeps(j - i))
    return ops.cast(ops.assign(ops.transpose(places, [1, 0])), dtype)


def tril_indices(row: int, col: int | None = None, offset: int = 0, dtype="int64") -> Tensor:
    """[2, n] positions on and below a diagonal of a matrix."""
    return _triangle_indices(row, row if col is None else col, lambda d: d <= offset, dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype="int64") -> Tensor:
    """[2, n] positions on and above a diagonal of a matrix."""
    return _triangle_indices(row, row if col is None else col, lambda d: d >= offset, dtype)


def where(condition: Tensor, x=None, y=None, name: str | None = None):
    """x where the condition holds, else y; without them, one tensor of positions per axis where it holds."""
    if x is None and y is None:
        places = ops.nonzero(condition)
        return tuple(places[:, i] for i in range(condition.ndim))
    if x is None or y is None:
        raise ValueError("[where] either both or none of x and y must be given.")
    return ops.where(condition, x, y)


def where_(condition: Tensor, x=None, y=None, name: str | None = None) -> Tensor:
    """Writes y into x where the condition does not hold."""
    return ops.copy_into(x, ops.where(condition, x, y))


def _bounded(x: Tensor, low, high) -> Tensor:
    for bound, op in ((low, ops.maximum), (high, ops.minimum)):
        if bound is not None:
            x = op(x, ops.cast(bound, x.dtype) if isinstance(bound, Tensor) else bound)
    return x


def clip(x: Tensor, min=None, max=None, name: str | None = None) -> Tensor:
    """x limited to [min, max]; None leaves a side open. Bounds may be tensors, which broadcast. Integers become floats
    where a bound is one."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _bounded(x, min, max)
    if (isinstance(min, float) or isinstance(max, float)) and isinstance(x, Tensor) and "int" in x.dtype.name:
        x = ops.cast(x, _C.get_default_dtype())
    return ops.clip(x, min, max)


def clip_(x: Tensor, min=None, max=None, name: str | None = None) -> Tensor:
    """``clip`` in place. Bounds of integers lose their fractions."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return ops.copy_into(x, _bounded(x, min, max))
    if "int" in x.dtype.name:
        min, max = (int(b) if isinstance(b, float) and math.isfinite(b) else b for b in (min, max))
    return ops.clip_(x, min, max)


def _in_place(op):
    """``op_``: the tensor itself takes the view's shape."""

    def function(x: Tensor, *args, **kwargs) -> Tensor:
        if _C.is_grad_enabled() and not x.stop_gradient and x.is_leaf:
            raise RuntimeError(f"[{op.__name__}_] a leaf that asks for its gradient cannot change in place.\n"
                               f"hint: Use {op.__name__}, or x.detach().")
        x._become(op(x, *args, **kwargs))
        return x

    function.__name__ = function.__qualname__ = f"{op.__name__}_"
    function.__doc__ = f"``{op.__name__}`` in place."
    return function


flatten_, reshape_, squeeze_, t_, transpose_, unsqueeze_ = map(
    _in_place, (ops.flatten, ops.reshape, ops.squeeze, t, ops.transpose, ops.unsqueeze))

_METHODS = set(__all__) - {"meshgrid", "tril_indices", "triu_indices", "where", "where_"}
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])
Tensor.where = lambda self, x=None, y=None, name=None: where(self, x, y)
Tensor.where_ = lambda self, x=None, y=None, name=None: where_(self, x, y)
for _name in ("concat", "stack", "block_diag", "scatter_nd", "broadcast_tensors", "nonzero"):
    if _name not in Tensor.__dict__:
        setattr(Tensor, _name, getattr(ops, _name))
