"""Public functions that are thin skins over ops: Paddle's looser argument forms."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops

__all__ = ["assign", "clone", "create_tensor", "einsum", "index_fill", "index_fill_", "is_empty", "nonzero"]


def assign(x, output: Tensor | None = None) -> Tensor:
    """A copy of x (a tensor, array, list or number), or its values written into ``output``, which takes on its shape."""
    source = x if isinstance(x, Tensor) else _C.make_tensor(x, None)
    if output is None:
        return ops.assign(source)
    if [str(size) for size in output.shape] == [str(size) for size in source.shape]:
        return ops.copy_into(output, source)
    output._become(ops.assign(source))
    return output


def clone(x: Tensor, name: str | None = None) -> Tensor:
    """A copy that gradients pass through."""
    return ops.assign(x)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sums of products by index notation: ``einsum('ij,jk->ik', a, b)``."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return ops.einsum(equation, list(operands))


def nonzero(x: Tensor, as_tuple: bool = False):
    """Where x is not zero: [n, rank] indices, or one tensor per axis."""
    places = ops.nonzero(x)
    if not as_tuple:
        return places
    return tuple(places[:, i] for i in range(x.ndim))


def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """Whether x has no elements."""
    return _C.make_tensor(x.size == 0, "bool")


def create_tensor(dtype, name: str | None = None, persistable: bool = False) -> Tensor:
    """An empty tensor of a dtype."""
    return ops.zeros([0], dtype)


def _filling(op):
    def fill(x: Tensor, index: Tensor, axis: int, value, name: str | None = None) -> Tensor:
        if not isinstance(value, Tensor) and isinstance(x, Tensor):
            value = ops.full([], value, x.dtype)
        return op(x, index, axis, value)

    fill.__name__ = fill.__qualname__ = op.__name__
    fill.__doc__ = "x with one value, a number or a tensor that holds one, at the places ``index`` along an axis."
    return fill


index_fill, index_fill_ = _filling(ops.index_fill), _filling(ops.index_fill_)
Tensor.index_fill, Tensor.index_fill_ = index_fill, index_fill_
