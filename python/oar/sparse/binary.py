"""Functions of two sparse tensors, and products with dense ones."""

from __future__ import annotations

from oar import _C, _sparse
from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = [
    "add", "addmm", "divide", "is_same_shape", "mask_as", "masked_matmul", "matmul", "multiply", "mv", "subtract",
]  # fmt: skip


@spelled
def matmul(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The matrix product. Of two sparse tensors it is sparse, of a sparse and a dense one dense.

    Args:
        x: a tensor ``[..., m, k]``.
        y: a tensor ``[..., k, n]``; one of both must be sparse. The sizes before the last two must be the same.

    Returns:
        a tensor ``[..., m, n]``.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_csr_tensor([0, 1, 2, 3], [1, 2, 0], [1.0, 2.0, 3.0], [3, 3])
        >>> oar.sparse.matmul(x, oar.ones([3, 2])).tolist()
        [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
        >>> oar.sparse.matmul(x, x)
        Tensor(shape=[3, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               crows=[0, 1, 2, 3],
               cols=[2, 0, 1],
               values=[2., 6., 3.])
    """
    if not y.is_sparse():
        _sparse.require(x, "matmul")
    return ops.matmul(x, y)


@spelled
def masked_matmul(x: Tensor, y: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements of the product of two dense tensors at the places of a sparse one; no others are computed.

    Args:
        x: a dense tensor ``[..., m, k]``.
        y: a dense tensor ``[..., k, n]``.
        mask: a sparse tensor ``[..., m, n]``. Its values do not matter.

    Returns:
        a sparse tensor with the places of mask.

    Examples:
        >>> import oar
        >>> mask = oar.eye(2).to_sparse_csr()
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.sparse.masked_matmul(x, x, mask).values().tolist()
        [7.0, 22.0]
    """
    return _C.sparse_masked_matmul(x, y, mask)


@spelled
def mv(x: Tensor, vec: Tensor, name: str | None = None) -> Tensor:
    """The product of a sparse matrix and a dense vector.

    Args:
        x: a sparse matrix.
        vec: a dense vector.

    Returns:
        a dense vector.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
        >>> oar.sparse.mv(x, oar.to_tensor([10.0, 1.0])).tolist()
        [2.0, 30.0]
    """
    _sparse.require(x, "mv")
    return ops.mv(x, vec)


@spelled
def addmm(
    input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, name: str | None = None
) -> Tensor:
    """``beta * input + alpha * (x @ y)`` for a sparse x.

    Args:
        input: a tensor of the shape of the product: sparse if y is, else dense.
        x: a sparse tensor.
        y: a sparse or a dense tensor.
        beta: the factor of input.
        alpha: the factor of the product.

    Returns:
        a tensor of the kind of input.

    Examples:
        >>> import oar
        >>> x = oar.eye(2).to_sparse_csr()
        >>> oar.sparse.addmm(oar.ones([2, 2]), x, oar.ones([2, 2]), 2.0, 3.0).tolist()
        [[5.0, 5.0], [5.0, 5.0]]
    """
    _sparse.require(x, "addmm")
    if input.is_sparse() != y.is_sparse():
        raise TypeError("[addmm] input and y must both be sparse or both be dense. Convert one with to_dense().")
    return ops.addmm(input, x, y, beta, alpha)


@spelled
def add(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The sum of two sparse tensors of one shape. It holds the elements of both.

    Args:
        x: a sparse tensor.
        y: a sparse tensor; a dense one of the same shape, then the sum is dense; or a bias, a dense tensor of the shape of
            x's dense axes, which is added to the elements that x holds.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_coo(2)
        >>> y = oar.to_tensor([[0.0, 1.0], [0.0, 5.0]]).to_sparse_coo(2)
        >>> oar.sparse.add(x, y)
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               indices=[[0, 1, 1],
                        [1, 0, 1]],
               values=[3., 3., 5.])
    """
    _checked(x, y, "add")
    if x.is_sparse_coo() and not y.is_sparse() and 0 < y.ndim < x.ndim and list(y.shape) == list(x.shape)[x.sparse_dim():]:
        return _C.sparse_with_values(x, ops.add(x.values(), y))
    return ops.add(x, y)


@spelled
def subtract(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The difference of two sparse tensors of one shape. It holds the elements of both.

    Args:
        x: a sparse tensor.
        y: a sparse tensor, or a dense one; then the difference is dense.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
        >>> y = oar.to_tensor([[0.0, 1.0], [0.0, 5.0]]).to_sparse_csr()
        >>> oar.sparse.subtract(x, y).to_dense().tolist()
        [[0.0, 1.0], [3.0, -5.0]]
    """
    return ops.subtract(_checked(x, y, "subtract"), y)


@spelled
def multiply(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The product, element by element, of two sparse tensors of one shape. It holds the elements of both, so that what is not
    a number stays so.

    Args:
        x: a sparse tensor.
        y: a sparse tensor, a number, or a dense tensor; then the product holds the elements of x.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_coo(2)
        >>> oar.sparse.multiply(x, x).values().tolist()
        [4.0, 9.0]
        >>> oar.sparse.multiply(x, 10.0).values().tolist()
        [20.0, 30.0]
    """
    return ops.multiply(_checked(x, y, "multiply"), y)


@spelled
def divide(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The quotient, element by element. That of two sparse tensors holds every element, because 0 / 0 is not a number.

    Args:
        x: a sparse tensor.
        y: a sparse tensor or a number.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_coo(2)
        >>> oar.sparse.divide(x, 2).values().tolist()
        [1.0, 1.5]
        >>> oar.sparse.divide(x, x).values().tolist()
        [nan, 1.0, 1.0, nan]
    """
    return ops.divide(_checked(x, y, "divide"), y)


def _checked(x: Tensor, y: object, op: str) -> Tensor:
    if not (isinstance(y, Tensor) and y.is_sparse()):
        _sparse.require(x, op)
    return x


@spelled
def is_same_shape(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors, dense or sparse, have one shape.

    Args:
        x: a tensor.
        y: a tensor.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.sparse.is_same_shape(oar.eye(3).to_sparse_coo(2), oar.zeros([3, 3]))
        True
    """
    return x.is_same_shape(y)


@spelled
def mask_as(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """The elements of a dense tensor at the places of a sparse one, zeros included.

    Args:
        x: a dense tensor.
        mask: a sparse tensor of the same shape. Its values do not matter.

    Returns:
        a sparse tensor with the places of mask.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.sparse.mask_as(x, oar.eye(2).to_sparse_csr()).values().tolist()
        [1.0, 4.0]
    """
    return _C.sparse_mask_as(x, mask)
