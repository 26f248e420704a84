"""Iterative solvers for linear systems that are given as a matrix or as a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.science._implicit import attach
from oar.science._state import at_least_one

__all__ = ["LinearSolution", "cg", "gmres"]

Operator = Callable[[Tensor], Tensor]


class LinearSolution(NamedTuple):
    """What ``cg`` and ``gmres`` return.

    Examples:
        >>> import oar
        >>> solution = oar.science.cg(oar.eye(2), oar.ones([2]))
        >>> solution.x.tolist(), solution.converged
        ([1.0, 1.0], True)
    """

    x: Tensor
    converged: bool
    iterations: int
    residual_norm: float


def _operator(A, owner: str, name: str) -> Operator:
    if isinstance(A, Tensor):
        if A.ndim != 2 or A.shape[0] != A.shape[1]:
            raise ValueError(f"[{owner}] {name} must be a square matrix or a function, but has shape {list(A.shape)}.")
        return lambda v: ops.matmul(A, v)
    if callable(A):
        return A
    raise TypeError(f"[{owner}] {name} must be a square matrix or a function of a vector, not {type(A).__name__}.")


def _checked(A, b, x0, M, tol: float, atol: float, maxiter: int | None, owner: str):
    if not isinstance(b, Tensor) or not (b.is_floating_point() or b.is_complex()):
        raise TypeError(f"[{owner}] b must be a float or complex tensor.")
    if isinstance(A, Tensor) and (b.ndim != 1 or A.shape[-1] != b.shape[0]):
        raise ValueError(f"[{owner}] A of shape {list(A.shape)} and b of shape {list(b.shape)} do not fit.")
    if x0 is not None and list(x0.shape) != list(b.shape):
        raise ValueError(f"[{owner}] x0 has shape {list(x0.shape)}, but b has {list(b.shape)}.")
    for name, value in (("tol", tol), ("atol", atol)):
        if value < 0 or not math.isfinite(value):
            raise ValueError(f"[{owner}] {name} must be a finite number of at least 0, but is {value}.")
    if maxiter is not None:
        at_least_one(owner, maxiter=maxiter)
    apply = _operator(A, owner, "A")
    precondition = (lambda v: v) if M is None else _operator(M, owner, "M")
    with oar.no_grad():
        trial = apply(b)
    if list(trial.shape) != list(b.shape):
        raise ValueError(f"[{owner}] A maps a tensor of shape {list(b.shape)} to one of shape {list(trial.shape)}; a square "
                         "system keeps the shape.")
    return apply, precondition


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of conj(a) * b."""
    return ops.sum((ops.conj(a) if a.is_complex() else a) * b)


def _norm(a: Tensor) -> float:
    return math.sqrt(max(float(ops.real(_dot(a, a)) if a.is_complex() else _dot(a, a)), 0.0))


def _transposed(apply: Operator, like: Tensor) -> Operator:
    """The adjoint of a linear function, as the gradient of a product with it."""

    def adjoint(v: Tensor) -> Tensor:
        with oar.enable_grad():
            x = ops.zeros_like(like)
            x.stop_gradient = False
            (gradient,) = oar.grad([apply(x)], [x], [v], allow_unused=True)
        return ops.zeros_like(like) if gradient is None else gradient

    return adjoint


def _cg(apply: Operator, b: Tensor, x0: Tensor | None, precondition: Operator, target: float, limit: int):
    x = ops.zeros_like(b) if x0 is None else ops.assign(x0)
    r = b if x0 is None else b - apply(x)
    size, count = _norm(r), 0
    if size <= target:
        return x, count, size
    z = precondition(r)
    p, rho = z, _dot(r, z)
    while count < limit:
        q = apply(p)
        curvature = _dot(p, q)
        real = float(ops.real(curvature) if b.is_complex() else curvature)
        if not real > 0:
            raise ValueError(f"[cg] p^H A p is {real:.3g} in iteration {count + 1}, so A is not positive definite. Use "
                             "gmres for a general A.")
        step = rho / curvature
        x, r = x + step * p, r - step * q
        count += 1
        size = _norm(r)
        if size <= target:
            break
        z = precondition(r)
        rho, before = _dot(r, z), rho
        p = z + (rho / before) * p
    return x, count, size


def cg(A, b: Tensor, x0: Tensor | None = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
       M=None) -> LinearSolution:
    """Solves ``A x = b`` for a symmetric (Hermitian) positive definite ``A`` by conjugate gradients.

    The solution is differentiable with respect to ``b`` and to whatever ``A`` depends on, by one more solve.

    Args:
        A: a matrix, or a function that applies it to a tensor of b's shape.
        b: the right side, of any shape if ``A`` is a function.
        x0: where to start; zeros if None.
        tol: the residual may be this part of the norm of ``b``,
        atol: or this large, whichever is larger.
        maxiter: the most iterations; 10 times the size of ``b`` if None.
        M: an approximate inverse of ``A``, as a matrix or a function.

    Returns:
        x, whether it converged, the iterations and the norm of the residual.

    Examples:
        >>> import oar
        >>> A = oar.to_tensor([[4.0, 1.0], [1.0, 3.0]])
        >>> x, converged, iterations, _ = oar.science.cg(A, oar.to_tensor([1.0, 2.0]))
        >>> converged, iterations
        (True, 2)
        >>> [round(value, 4) for value in x.tolist()]
        [0.0909, 0.6364]
    """
    apply, precondition = _checked(A, b, x0, M, tol, atol, maxiter, "cg")
    limit = maxiter or 10 * b.size

    def run(right: Tensor, start: Tensor | None):
        return _cg(apply, right, start, precondition, max(tol * _norm(right), atol), limit)

    with oar.no_grad():
        x, count, size = run(b.detach(), x0)
        converged = size <= max(tol * _norm(b), atol)
    solution = attach(x, b - apply(x), lambda g: run(g, None)[0], "cg")
    return LinearSolution(solution, converged, count, size)


def _arnoldi_cycle(apply: Operator, precondition: Operator, r: Tensor, size: float, steps: int, target: float):
    """Some steps of GMRES on the residual r: the correction, and how many steps were taken."""
    basis = [r / size]
    columns: list[np.ndarray] = []
    kind = np.complex128 if r.is_complex() else np.float64
    for j in range(steps):
        w = apply(precondition(basis[j]))
        column = np.zeros(j + 2, kind)
        stacked = ops.stack([ops.reshape(v, [-1]) for v in basis], 0)
        for _ in range(2):  # twice is enough: one pass loses orthogonality
            flat = ops.reshape(w, [-1])
            h = ops.matmul(ops.conj(stacked) if r.is_complex() else stacked, flat)
            w = w - ops.reshape(ops.matmul(h, stacked), list(r.shape))
            column[: j + 1] += h.numpy()
        column[j + 1] = _norm(w)
        columns.append(column)
        matrix = np.zeros((j + 2, j + 1), kind)
        for i, c in enumerate(columns):
            matrix[: len(c), i] = c
        right = np.zeros(j + 2, kind)
        right[0] = size
        y = np.linalg.lstsq(matrix, right, rcond=None)[0]
        left = float(np.linalg.norm(right - matrix @ y))
        if left <= target or abs(column[j + 1]) <= 1e-14 * abs(column).max():
            break
        basis.append(w / float(abs(column[j + 1])))
    weights = oar.to_tensor(y).astype(r.dtype)
    stacked = ops.stack([ops.reshape(v, [-1]) for v in basis[: len(columns)]], 0)
    return precondition(ops.reshape(ops.matmul(weights, stacked), list(r.shape))), len(columns)


def _gmres(apply, b, x0, precondition, target: float, limit: int, restart: int):
    x = ops.zeros_like(b) if x0 is None else ops.assign(x0)
    r = b if x0 is None else b - apply(x)
    size, count = _norm(r), 0
    while size > target and count < limit:
        correction, steps = _arnoldi_cycle(apply, precondition, r, size, min(restart, limit - count), target)
        x = x + correction
        count += steps
        r = b - apply(x)
        size, before = _norm(r), size
        if not size < before:  # NaN, or no progress: another cycle would do the same
            break
    return x, count, size


def gmres(A, b: Tensor, x0: Tensor | None = None, *, tol: float = 1e-5, atol: float = 0.0, restart: int = 20,
          maxiter: int | None = None, M=None) -> LinearSolution:
    """Solves ``A x = b`` for any invertible ``A`` by GMRES with restarts.

    The solution is differentiable with respect to ``b`` and to whatever ``A`` depends on, by one solve with the adjoint
    of ``A``.

    Args:
        A: a matrix, or a differentiable linear function of a tensor of b's shape.
        b: the right side, of any shape if ``A`` is a function.
        x0: where to start; zeros if None.
        tol: the residual may be this part of the norm of ``b``,
        atol: or this large, whichever is larger.
        restart: the steps between restarts; each keeps a vector.
        maxiter: the most steps in all; 10 times the size of ``b`` if None.
        M: an approximate inverse of ``A``, as a matrix or a function, applied from the right.

    Returns:
        x, whether it converged, the iterations and the norm of the residual.

    Examples:
        >>> import oar
        >>> A = oar.to_tensor([[1.0, 2.0], [0.0, 4.0]])
        >>> [round(value, 4) for value in oar.science.gmres(A, oar.to_tensor([4.0, 4.0])).x.tolist()]
        [2.0, 1.0]
    """
    apply, precondition = _checked(A, b, x0, M, tol, atol, maxiter, "gmres")
    at_least_one("gmres", restart=restart)
    limit, restart = maxiter or 10 * b.size, min(restart, b.size)
    with oar.no_grad():
        x, count, size = _gmres(apply, b.detach(), x0, precondition, max(tol * _norm(b), atol), limit, restart)
        converged = size <= max(tol * _norm(b), atol)
        adjoint = _transposed(apply, b)

    def solve_transposed(g: Tensor) -> Tensor:
        return _gmres(adjoint, g, None, lambda v: v, max(tol * _norm(g), atol), limit, restart)[0]

    return LinearSolution(attach(x, b - apply(x), solve_transposed, "gmres"), converged, count, size)
