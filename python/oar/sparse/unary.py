"""Functions of one sparse tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar import _C, _sparse
from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = [
    "abs", "asin", "asinh", "atan", "atanh", "cast", "coalesce", "deg2rad", "expm1", "isnan", "log1p", "neg",
    "pca_lowrank", "pow", "rad2deg", "reshape", "sin", "sinh", "slice", "sqrt", "square", "sum", "tan", "tanh",
    "transpose",
]  # fmt: skip

_UNARY_TEXT = """{meaning} of each element that a sparse tensor holds.

    Args:
        x: a sparse tensor.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [{values}], [3])
        >>> oar.sparse.{name}(x)
        Tensor(shape=[3], dtype={dtype}, place=Place(cpu), stop_gradient=True,
               indices=[[0, 2]],
               values=[{results}])
    """


def _unary(op_name: str, meaning: str, results: str, values: str = "-0.5, 1.0", dtype: str = "float32") -> Callable:
    op = getattr(ops, op_name)

    def function(x: Tensor, name: str | None = None) -> Tensor:
        _sparse.require(x, op_name)
        return op(x)

    function.__name__ = function.__qualname__ = op_name
    function.__doc__ = _UNARY_TEXT.format(name=op_name, meaning=meaning, results=results, values=values, dtype=dtype)
    return spelled(function)


sin = _unary("sin", "The sine", "-0.47942555,  0.84147096")
tan = _unary("tan", "The tangent", "-0.54630250,  1.55740774")
asin = _unary("asin", "The inverse of the sine", "-0.52359879,  1.57079637")
atan = _unary("atan", "The inverse of the tangent", "-0.46364760,  0.78539819")
sinh = _unary("sinh", "The hyperbolic sine", "-0.52109534,  1.17520118")
asinh = _unary("asinh", "The inverse of the hyperbolic sine", "-0.48121184,  0.88137358")
atanh = _unary("atanh", "The inverse of the hyperbolic tangent", "-0.54930615,  0.54930615", "-0.5, 0.5")
tanh = _unary("tanh", "The hyperbolic tangent", "-0.46211717,  0.76159418")
square = _unary("square", "The square", "0.25000000, 1.        ")
sqrt = _unary("sqrt", "The square root", "2., 3.", "4.0, 9.0")
log1p = _unary("log1p", "log(1 + x)", "-0.69314718,  0.69314718")
expm1 = _unary("expm1", "exp(x) - 1", "-0.39346933,  1.71828175")
abs = _unary("abs", "The absolute value", "0.50000000, 1.        ")
neg = _unary("neg", "-x", " 0.50000000, -1.        ")
deg2rad = _unary("deg2rad", "The angle in radians", " 3.14159274, -3.14159274", "180.0, -180.0")
rad2deg = _unary("rad2deg", "The angle in degrees", "-28.64788818,  57.29577637")
isnan = _unary("isnan", "Whether x is not a number,", "False, True ", "1.0, float('nan')", "bool")


@spelled
def pow(x: Tensor, factor: float, name: str | None = None) -> Tensor:
    """A power of each element that a sparse tensor holds.

    Args:
        x: a sparse tensor.
        factor: the exponent.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 3.0], [3])
        >>> oar.sparse.pow(x, 2).values().tolist()
        [4.0, 9.0]
    """
    _sparse.require(x, "pow")
    x = _C.sparse_coalesce(x) if x.is_sparse_coo() else x
    return _C.sparse_with_values(x, ops.pow(x.values(), factor))  # the power 0 too, which is not 0 at 0


@spelled
def coalesce(x: Tensor, name: str | None = None) -> Tensor:
    """A COO tensor whose elements are in row-major order, those of one place summed.

    Args:
        x: a COO tensor.

    Returns:
        a COO tensor.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], [3])
        >>> y = oar.sparse.coalesce(x)
        >>> y.indices().tolist(), y.values().tolist()
        ([[0, 2]], [2.0, 4.0])
    """
    return x.coalesce()


@spelled
def cast(x: Tensor, index_dtype: Any = None, value_dtype: Any = None, name: str | None = None) -> Tensor:
    """A sparse tensor with index vectors or values in other dtypes.

    Args:
        x: a sparse tensor.
        index_dtype: the dtype of the index vectors; None keeps it.
        value_dtype: the dtype of the values; None keeps it.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.sparse.cast(oar.eye(2).to_sparse_coo(2), 'int32', 'float64')
        >>> x.indices().dtype, x.dtype
        (oar.int32, oar.float64)
    """
    _sparse.require(x, "cast")
    places, values, coalesced = _C.sparse_parts(x)
    if value_dtype is not None:
        values = ops.cast(values, value_dtype)
    if index_dtype is not None:
        places = [ops.cast(part, index_dtype) for part in places]
    if x.is_sparse_coo():
        return _C.sparse_coo(places[0], values, x.shape, coalesced, True)
    return _C.sparse_csr(places[0], places[1], values, x.shape, True)


@spelled
def transpose(x: Tensor, perm: Any, name: str | None = None) -> Tensor:
    """A sparse tensor with its axes in another order.

    Args:
        x: a sparse tensor. Sparse and dense axes of a COO tensor are not mixed.
        perm: the axes of x in their new order.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr()
        >>> oar.sparse.transpose(x, [1, 0]).to_dense().tolist()
        [[0.0, 0.0], [2.0, 3.0]]
    """
    _sparse.require(x, "transpose")
    return ops.transpose(x, perm)


@spelled
def reshape(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """A sparse tensor with the same elements in another shape.

    Args:
        x: a sparse tensor. Dense axes of a COO tensor keep their sizes.
        shape: the new shape; -1 stands for what remains, 0 for the size of x.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse_coo(2)
        >>> oar.sparse.reshape(x, [3, -1]).to_dense().tolist()
        [[0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    """
    _sparse.require(x, "reshape")
    return ops.reshape(x, shape)


@spelled
def slice(x: Tensor, axes: Any, starts: Any, ends: Any, name: str | None = None) -> Tensor:
    """A part of a sparse tensor.

    Args:
        x: a sparse tensor.
        axes: the axes that are cut.
        starts: where each begins; negative numbers count from the end.
        ends: where each ends.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse_coo(2)
        >>> oar.sparse.slice(x, [1], [1], [3]).to_dense().tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    _sparse.require(x, "slice")
    return ops.slice(x, axes, starts, ends)


@spelled
def sum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The sums over axes of a sparse tensor, as a sparse tensor of the same kind. A COO result has at least one axis, a CSR
    result at least two.

    Args:
        x: a sparse tensor.
        axis: the axes to sum over; None takes all.
        dtype: the dtype of the result; None takes that of x, int64 for small integers.
        keepdim: whether summed axes stay, with size 1.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse_coo(2)
        >>> oar.sparse.sum(x, axis=1)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               indices=[[0, 1]],
               values=[2., 7.])
    """
    _sparse.require(x, "sum")
    return ops.sum(x, axis, dtype, keepdim)


@spelled
def pca_lowrank(
    x: Tensor, q: int | None = None, center: bool = True, niter: int = 2, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest singular values and vectors of a sparse matrix, by products with random vectors.

    Args:
        x: a sparse matrix.
        q: how many; None takes 6, or less for a small matrix.
        center: whether the mean of each column is subtracted first.
        niter: the number of iterations; more are more exact.

    Returns:
        ``(U, S, V)`` with ``x`` close to ``U * S @ V.T``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[4.0, 0.0], [0.0, 3.0], [0.0, 0.0]]).to_sparse_coo(2)
        >>> u, s, v = oar.sparse.pca_lowrank(x, q=2, center=False)
        >>> [round(value, 4) for value in s.tolist()]
        [4.0, 3.0]
    """
    _sparse.require(x, "pca_lowrank")
    if x.ndim != 2:
        raise ValueError(f"[pca_lowrank] x has shape {list(x.shape)}; it must be a matrix.")
    rows, width = x.shape
    q = min(6, rows, width) if q is None else q
    if not 0 <= q <= min(rows, width):
        raise ValueError(f"[pca_lowrank] q is {q}; for a matrix of shape {[rows, width]} it must be from 0 to "
                         f"{min(rows, width)}.")
    if niter < 0:
        raise ValueError(f"[pca_lowrank] niter is {niter}; it cannot be negative.")
    linalg: Any = oar.linalg
    means = ops.reshape(sum(x, 0).to_dense(), [1, width]) / rows if center else None
    transposed = ops.transpose(x, [1, 0])

    def forward(dense: Tensor) -> Tensor:  # (x - means) @ dense
        out = ops.matmul(x, dense)
        return out if means is None else out - ops.matmul(means, dense)

    def backward(dense: Tensor) -> Tensor:  # its transpose
        out = ops.matmul(transposed, dense)
        return out if means is None else out - ops.matmul(ops.transpose(means, [1, 0]), ops.sum(dense, [0], None, True))

    basis = linalg.qr(forward(oar.randn([width, q], dtype=x.dtype)))[0]
    for _ in range(niter):
        basis = linalg.qr(backward(basis))[0]
        basis = linalg.qr(forward(basis))[0]
    v, s, u = linalg.svd(backward(basis), full_matrices=False)
    return ops.matmul(basis, ops.transpose(u, [1, 0])), s, v
