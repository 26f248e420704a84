"""What follows from the factors of matrices: ranks, condition numbers, pseudoinverses, least squares."""

from __future__ import annotations

import itertools
import math

from oar._C import Tensor, ops
from oar._spelling import spelled
from oar.linalg.factors import adjoint
from oar.linalg.norms import matrix_norm

_EPSILON = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52,
            "complex64": 2.0 ** -23, "complex128": 2.0 ** -52}
_REAL = {"complex64": "float32", "complex128": "float64"}


def _real_dtype(x: Tensor) -> str:
    return _REAL.get(x.dtype.name, x.dtype.name)


def _check_matrices(op: str, x: Tensor) -> None:
    if x.ndim < 2:
        raise ValueError(f"[{op}] x of shape {list(x.shape)} must hold matrices in its last two axes.")


@spelled
def pinv(x: Tensor, rcond: float | Tensor = 1e-15, hermitian: bool = False, name: str | None = None) -> Tensor:
    """The pseudoinverse of matrices.

    The derivative is that at fixed rank; equal singular values are no obstacle.

    Args:
        x: matrices in the last two axes, of any sizes.
        rcond: singular values up to rcond times the largest one count as zero; one number, or one for each matrix.
        hermitian: whether x equals its conjugate transpose, which is faster.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.pinv(oar.to_tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
        Tensor(shape=[2, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.50000000, 0.        , 0.        ],
                [0.        , 0.        , 0.        ]])
    """
    return ops.pseudo_inverse(x, _as_limit(rcond, "float64"), hermitian)


def _as_limit(value: float | Tensor, dtype: str) -> Tensor:
    return ops.cast(value, dtype) if isinstance(value, Tensor) else ops.full([], float(value), dtype)


@spelled
def matrix_rank(x: Tensor, tol: float | Tensor | None = None, hermitian: bool = False,
                atol: float | Tensor | None = None, rtol: float | Tensor | None = None,
                name: str | None = None) -> Tensor:
    """How many singular values are above a limit.

    The limit is tol, or max(atol, rtol * the largest singular value). By default atol is 0, and rtol is the larger size of x
    times the rounding error of its dtype (0 if a positive atol is given).

    Args:
        x: matrices in the last two axes, of any sizes.
        tol: the limit; one number, or a tensor that broadcasts against the leading axes of x.
        hermitian: whether x equals its conjugate transpose. Only its lower triangle is read then.
        atol: the absolute limit.
        rtol: the limit relative to the largest singular value.

    Returns:
        an int64 tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.matrix_rank(oar.to_tensor([[1.0, 2.0], [2.0, 4.0]]))
        Tensor(shape=[], dtype=int64, place=Place(cpu), stop_gradient=True,
               1)
    """
    if tol is not None and (atol is not None or rtol is not None):
        raise ValueError("[matrix_rank] tol is given together with atol or rtol; pass either tol, or atol and rtol.")
    _check_matrices("matrix_rank", x)
    values = ops.abs(ops.eigvalsh(x)) if hermitian else ops.svdvals(x)
    if min(x.shape[-2:]) == 0:
        return ops.zeros(list(x.shape[:-2]), "int64")
    dtype = _real_dtype(x)
    largest = ops.max(values, [-1])
    default = max(x.shape[-2:]) * _EPSILON[x.dtype.name]
    if tol is not None:
        limit = _as_limit(tol, dtype)
    else:
        absolute = _as_limit(0.0 if atol is None else atol, dtype)
        relative = _as_limit(default if rtol is None else rtol, dtype)
        if rtol is None and atol is not None:
            relative = ops.where(ops.greater_than(absolute, ops.zeros_like(absolute)), ops.zeros_like(relative), relative)
        limit = ops.maximum(absolute, relative * largest)
    return ops.sum(ops.cast(ops.greater_than(values, ops.unsqueeze(limit, [-1])), "int64"), [-1])


@spelled
def cond(x: Tensor, p: float | str | None = None, name: str | None = None) -> Tensor:
    """The condition number: the norm of x times the norm of its inverse.

    Args:
        x: matrices in the last two axes; square ones unless p is None, 2 or -2.
        p: the norm: None or 2 is the largest singular value, -2 the smallest, and "fro", "nuc", 1, -1, inf and -inf are those of
            matrix_norm. A singular matrix has the condition number inf for None and 2, and is an error for norms that
            need the inverse.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.cond(oar.to_tensor([[4.0, 0.0], [0.0, 0.5]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               8.)
    """
    _check_matrices("cond", x)
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ValueError(f"[cond] p is {p!r}; it can be None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    if p in (None, 2, -2):
        if min(x.shape[-2:]) == 0:
            raise ValueError(f"[cond] the matrices of x of shape {list(x.shape)} have no elements.")
        values = ops.svdvals(x)
        largest, smallest = ops.max(values, [-1]), ops.min(values, [-1])
        return smallest / largest if p == -2 else largest / smallest
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[cond] p is {p!r}, which needs square matrices; x has shape {list(x.shape)}.")
    return matrix_norm(x, p, [-2, -1]) * matrix_norm(ops.inverse(x), p, [-2, -1])


@spelled
def matrix_exp(x: Tensor, name: str | None = None) -> Tensor:
    """The exponential of square matrices: the sum of x^k / k!. Of a number, its exponential.

    Args:
        x: square matrices in the last two axes, or a 0-d tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.matrix_exp(oar.to_tensor([[0.0, 1.0], [0.0, 0.0]]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 1.],
                [0., 1.]])
    """
    return ops.exp(x) if x.ndim == 0 else ops.matrix_exp(x)


_DRIVERS = (None, "gels", "gelsy", "gelsd", "gelss")


def _solution_of_full_rank(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[-2] >= x.shape[-1]:
        q, r = ops.qr_parts(x)
        return ops.triangular_solve(r, ops.matmul(adjoint(q), y))
    q, r = ops.qr_parts(adjoint(x))
    return ops.matmul(q, ops.triangular_solve(ops.conj(r), y, True, True))


@spelled
def lstsq(x: Tensor, y: Tensor, rcond: float | None = None, driver: str | None = None,
          name: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The z for which x z is nearest to y; of several, the one of smallest length.

    The derivative of the solution is that at fixed rank.

    Args:
        x: matrices of m rows and n columns in the last two axes.
        y: matrices of m rows. Leading axes broadcast.
        rcond: singular values of x up to rcond times the largest one count as zero; None is the larger size times 1e-7 for
            float32, 1e-15 for float64.
        driver: "gels" assumes full rank and is the fastest. "gelsy" (also None), "gelsd" and "gelss" take any rank. They
            are computed in the same way, and differ in what they return.

    Returns:
        the solution; the squared distances, if m > n and x has full rank (not for "gelsy"); the rank as int32 (not for
        "gels"); the singular values (for "gelsd" and "gelss"). What does not apply is empty.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> solution, *_ = oar.linalg.lstsq(x, oar.to_tensor([[1.0], [3.0], [5.0]]))
        >>> [round(value, 4) for value in solution.flatten().tolist()]
        [1.0, 2.0]
    """
    if driver not in _DRIVERS:
        raise ValueError(f"[lstsq] driver is {driver!r}; it can be None, 'gels', 'gelsy', 'gelsd' or 'gelss'.")
    for argument, t in (("x", x), ("y", y)):
        if t.ndim < 2:
            raise ValueError(f"[lstsq] {argument} of shape {list(t.shape)} must hold matrices in its last two axes.")
    if x.dtype != y.dtype or x.dtype.name not in _EPSILON:
        raise ValueError(f"[lstsq] x has dtype {x.dtype.name} and y {y.dtype.name}; both must have the same float dtype.")
    rows, columns = x.shape[-2:]
    if rows != y.shape[-2]:
        raise ValueError(f"[lstsq] x of shape {list(x.shape)} and y of shape {list(y.shape)} must have as many rows.")
    dtype = _real_dtype(x)
    if rcond is None:
        rcond = (1e-15 if dtype == "float64" else 1e-7) * max(rows, columns)
    x, y = _with_one_batch(x, y)
    none = ops.zeros([0], dtype)
    if driver == "gels":
        solution, rank, values = _solution_of_full_rank(x, y), ops.zeros([0], "int32"), none
        is_full = True
    else:
        solution, values = ops.least_squares(x, y, float(rcond))
        limit = ops.max(values, [-1], True) * float(rcond) if min(rows, columns) else values
        rank = ops.sum(ops.cast(ops.greater_than(values, limit), "int32"), [-1], "int32")
        is_full = driver in ("gelsd", "gelss") and _has_full_rank(rank, columns)
    residuals = none
    if rows > columns and is_full:
        distance = ops.abs(ops.matmul(x, solution) - y)
        residuals = ops.sum(distance * distance, [-2])
    return solution, residuals, rank, values if driver in ("gelsd", "gelss") else none


def _has_full_rank(rank: Tensor, columns: int) -> bool:
    """While a program is captured, the rank is not known; it is then taken to be full."""
    from oar._framework import in_dynamic_mode
    return not in_dynamic_mode() or bool(ops.all(ops.equal(rank, ops.full([], columns, "int32"))))


def _with_one_batch(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same leading axes."""
    ours, theirs = list(x.shape[:-2]), list(y.shape[:-2])
    if ours == theirs:
        return x, y
    pairs = itertools.zip_longest(reversed(ours), reversed(theirs), fillvalue=1)
    batch = [b if a == 1 else a for a, b in pairs][::-1]
    try:
        return (ops.broadcast_to(x, batch + list(x.shape[-2:])), ops.broadcast_to(y, batch + list(y.shape[-2:])))
    except ValueError:
        raise ValueError(f"[lstsq] the leading axes of x of shape {list(x.shape)} and y of shape {list(y.shape)} do not "
                         "broadcast.") from None
