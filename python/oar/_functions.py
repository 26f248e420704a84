"""Public functions that are thin skins over ops: Paddle's looser argument forms."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar._lazy import np
from oar._spelling import spelled

__all__ = ["assign", "clone", "create_tensor", "einsum", "index_fill", "index_fill_", "is_empty", "nonzero"]


def assign(x, output: Tensor | None = None) -> Tensor:
    """A copy of x (a tensor, array, list or number), or its values written into ``output``, which gets its shape.

    Args:
        x: the input.
        output: a tensor to write to, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.assign([1.0, 2.0])
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
        >>> y = oar.zeros([2])
        >>> _ = oar.assign(oar.to_tensor([5.0, 6.0]), y)
        >>> y
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [5., 6.])
    """
    if output is None and isinstance(x, list) and getattr(x, "is_tensor_array", False):
        return type(x)(ops.assign(item) for item in x)  # type: ignore[return-value]
    source = x if isinstance(x, Tensor) else _made(x)
    if output is None:
        return ops.assign(source)
    if [str(size) for size in output.shape] == [str(size) for size in source.shape]:
        return ops.copy_into(output, source)
    output._become(ops.assign(source))
    return output


def _made(x) -> Tensor:
    """A tensor of what ``assign`` takes."""
    if not isinstance(x, (bool, int, float, complex, list, tuple, np.ndarray, np.generic)):
        raise _C.ArgumentTypeError(
            f"[assign] x must be a tensor, an array, a list or a number, not {type(x).__name__}. Use oar.to_tensor to convert it."
        )
    if in_dynamic_mode():
        return _C.make_tensor(x, None)
    entries = x if isinstance(x, (list, tuple)) else ()
    variables = [v for v in entries if isinstance(v, Tensor)]
    if any(v.size != 1 for v in variables):
        raise _C.ArgumentTypeError("[assign] a list of variables should hold variables with one element. Use oar.stack.")
    if variables:
        return ops.stack([ops.reshape(v, []) if isinstance(v, Tensor) else _C.make_tensor(v, None) for v in entries], 0)
    return _C.make_tensor(x, None)


@spelled
def clone(x: Tensor, name: str | None = None) -> Tensor:
    """A copy that gradients pass through.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> oar.clone(x).backward()
        >>> x.grad
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.])
    """
    return ops.assign(x)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sums of products by index notation: ``einsum('ij,jk->ik', a, b)``.

    Args:
        equation: the letters of the operands' axes, then the result's.
        operands: the tensors.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.einsum('ij,jk->ik', oar.to_tensor([[1.0, 2.0]]), oar.to_tensor([[3.0], [4.0]]))
        Tensor(shape=[1, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[11.]])
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return ops.einsum(equation, list(operands))


@spelled
def nonzero(x: Tensor, as_tuple: bool = False):
    """Where x is not zero: [n, rank] indices, or one tensor per axis.

    Args:
        x: the input.
        as_tuple: whether to return one tensor per axis.

    Examples:
        >>> import oar
        >>> oar.nonzero(oar.to_tensor([0, 3, 0, 4]))
        Tensor(shape=[2, 1], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1],
                [3]])
    """
    places = ops.nonzero(x)
    if not as_tuple:
        return places
    return tuple(places[:, i] for i in range(x.ndim))


def is_empty(x: Tensor, name: str | None = None) -> Tensor:
    """Whether x has no elements.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.is_empty(oar.zeros([0, 3])).item()
        True
    """
    return _C.make_tensor(x.size == 0, "bool")


def create_tensor(dtype, name: str | None = None, persistable: bool = False) -> Tensor:
    """An empty tensor of a dtype.

    Args:
        dtype: the dtype of the result; None takes the default, or that of the input.
        persistable: whether the variable lives on between runs.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.create_tensor('float32').shape
        [0]
    """
    return ops.zeros([0], dtype)


def _filling(op):
    def fill(x: Tensor, index: Tensor, axis: int, value, name: str | None = None) -> Tensor:
        if not isinstance(value, Tensor) and isinstance(x, Tensor):
            value = ops.full([], value, x.dtype)
        return op(x, index, axis, value)

    fill.__name__ = fill.__qualname__ = op.__name__
    fill.__doc__ = f"""x with one value at the places ``index`` along an axis.

    Args:
        x: the input; ``index_fill_`` changes it.
        index: the places, a vector of integers.
        axis: the axis.
        value: a number, or a tensor that holds one.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.{op.__name__}(oar.zeros([3, 2]), oar.to_tensor([0, 2]), 0, 5.0).tolist()
        [[5.0, 5.0], [0.0, 0.0], [5.0, 5.0]]
    """
    return spelled(fill)


index_fill, index_fill_ = _filling(ops.index_fill), _filling(ops.index_fill_)
for _function in (index_fill, index_fill_):
    setattr(Tensor, _function.__name__, _function)
