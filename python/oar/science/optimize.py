"""Minimisation by quasi-Newton methods, with Paddle's signatures and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.optimizer._line_search import strong_wolfe

__all__ = ["minimize_bfgs", "minimize_lbfgs"]


class _Search:
    """The iterations that both methods share; ``direction`` and ``learn`` are theirs."""

    def __init__(self, func: Callable[[Tensor], Tensor], start: Tensor, line_search_fn: str, max_tries: int, length: float) -> None:
        self._func, self._max_tries, self._length = func, max_tries, length
        self._line_search_fn = line_search_fn
        self.calls = 0
        self.x = start.detach().clone()
        self.value, self.gradient = self._evaluate(self.x)

    def _evaluate(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.calls += 1
        with oar.enable_grad():
            at = x.detach()
            at.stop_gradient = False
            value = self._func(at)
            if not isinstance(value, Tensor) or value.size != 1:
                got = f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
                raise ValueError(f"objective_func must return a tensor with one element, but returned {got}. Sum it.")
            (gradient,) = oar.grad([value], [at], allow_unused=True)
        return value.detach(), ops.zeros_like(x) if gradient is None else gradient

    def run(self, max_iters: int, tolerance_grad: float, tolerance_change: float, direction: Callable[[Tensor], Tensor],
            learn: Callable[[Tensor, Tensor, float], None]) -> bool:
        """Iterates; whether it converged."""
        for _ in range(max_iters):
            p = direction(self.gradient)
            slope = float(ops.sum(self.gradient * p))
            length, value, gradient = self._line(p, slope)
            change, bend = p * length, gradient - self.gradient
            learn(change, bend, float(ops.sum(change * bend)))
            self.x, self.value, self.gradient = self.x + change, value, gradient
            if float(ops.abs(gradient).max()) < tolerance_grad or float(ops.abs(p).max()) < tolerance_change:
                return True
            if length == 0.0:
                return False
        return False

    def _line(self, p: Tensor, slope: float) -> tuple[float, Tensor, Tensor]:
        if self._line_search_fn != "strong_wolfe":
            raise NotImplementedError("Currently only support line_search_fn = 'strong_wolfe', but the specified is "
                                      f"'{self._line_search_fn}'")
        values: dict[float, Tensor] = {0.0: self.value}

        def along(length: float) -> tuple[float, Tensor]:
            value, gradient = self._evaluate(self.x + p * length)
            values[length] = value
            return float(value), gradient

        if not slope < 0:  # the gradient is zero, or rounding is all that is left
            return 0.0, self.value, self.gradient
        _, gradient, length = strong_wolfe(along, self._length, p, float(self.value), self.gradient, slope, self._max_tries)
        return length, values[length], gradient

    def results(self, converged: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return (oar.to_tensor([converged]), oar.to_tensor([self.calls], dtype="int64"), self.x, self.value, self.gradient)


def _check(initial_position: Any, dtype: str) -> None:
    if not oar.in_dynamic_mode():
        raise NotImplementedError("minimize_bfgs and minimize_lbfgs are for eager mode; static programs do not have them yet. "
                                  "Call oar.disable_static() first.")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"The dtype must be 'float32' or 'float64', but the specified is {dtype}.")
    if not isinstance(initial_position, Tensor):
        raise ValueError(f"The input: {initial_position} must be tensor.")
    if initial_position.ndim != 1:
        raise ValueError(f"initial_position must be a vector, but has shape {list(initial_position.shape)}. Flatten it.")
    if str(initial_position.dtype).rpartition(".")[2] != dtype:
        raise ValueError(f"initial_position has dtype {initial_position.dtype}, but dtype is {dtype!r}. They must agree.")


def _checked_estimate(estimate: Any, size: int) -> Tensor:
    """A copy of the initial estimate of the inverse Hessian."""
    if not isinstance(estimate, Tensor):
        raise ValueError(f"The input: {estimate} must be tensor.")
    matrix = estimate.numpy()
    fits = matrix.shape == (size, size) and (matrix == matrix.T).all()
    if not fits or np.linalg.eigvalsh(matrix.astype("float64")).min() <= 0:
        raise ValueError("The initial_inverse_hessian_estimate should be symmetric and positive definite, but the specified "
                         "is not.")
    return estimate.detach().clone()


def minimize_bfgs(objective_func: Callable[[Tensor], Tensor], initial_position: Tensor, max_iters: int = 50,
                  tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9,
                  initial_inverse_hessian_estimate: Tensor | None = None, line_search_fn: str = "strong_wolfe",
                  max_line_search_iters: int = 50, initial_step_length: float = 1.0, dtype: str = "float32",
                  name: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Minimises a function of a vector by BFGS, which builds an estimate of the inverse Hessian.

    Args:
        objective_func: a differentiable function of a vector that returns a tensor with one element.
        initial_position: where to start: a vector.
        max_iters: the most iterations.
        tolerance_grad: the largest element of the gradient at which a point is a minimum.
        tolerance_change: the largest element of the step at which a point is a minimum.
        initial_inverse_hessian_estimate: a symmetric positive definite matrix; the identity if None.
        line_search_fn: "strong_wolfe".
        max_line_search_iters: the most evaluations in a line search.
        initial_step_length: the first length that a line search tries.
        dtype: "float32" or "float64", that of initial_position.
        name: accepted for compatibility.

    Returns:
        whether it converged, the number of calls of the function, the position, the value and the gradient there, and the
        estimate of the inverse Hessian.

    Examples:
        >>> import oar
        >>> func = lambda x: ((x - oar.to_tensor([1.0, 2.0])) ** 2).sum()
        >>> converged, calls, x, value, gradient, inverse = oar.science.minimize_bfgs(func, oar.zeros([2]))
        >>> converged.item(), [round(number, 4) for number in x.tolist()]
        (True, [1.0, 2.0])
    """
    _check(initial_position, dtype)
    eye = oar.eye(initial_position.shape[0], dtype=dtype)
    given = initial_inverse_hessian_estimate
    estimate = eye if given is None else _checked_estimate(given, initial_position.shape[0])
    search = _Search(objective_func, initial_position, line_search_fn, max_line_search_iters, initial_step_length)

    def learn(change: Tensor, bend: Tensor, curvature: float) -> None:
        nonlocal estimate
        weight = 1000.0 if curvature == 0.0 else 1.0 / curvature
        column, row = change[:, None], bend[None, :]
        left = eye - column @ row * weight
        estimate = left @ estimate @ left.t() + column @ column.t() * weight

    with oar.no_grad():
        converged = search.run(max_iters, tolerance_grad, tolerance_change, lambda g: -(estimate @ g), learn)
    return (*search.results(converged), estimate)


def minimize_lbfgs(objective_func: Callable[[Tensor], Tensor], initial_position: Tensor, history_size: int = 100,
                   max_iters: int = 50, tolerance_grad: float = 1e-8, tolerance_change: float = 1e-8,
                   initial_inverse_hessian_estimate: Tensor | None = None, line_search_fn: str = "strong_wolfe",
                   max_line_search_iters: int = 50, initial_step_length: float = 1.0, dtype: str = "float32",
                   name: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Minimises a function of a vector by L-BFGS, which remembers the last steps instead of a matrix.

    Args:
        objective_func: a differentiable function of a vector that returns a tensor with one element.
        initial_position: where to start: a vector.
        history_size: how many steps are remembered.
        max_iters: the most iterations.
        tolerance_grad: the largest element of the gradient at which a point is a minimum.
        tolerance_change: the largest element of the step at which a point is a minimum.
        initial_inverse_hessian_estimate: a symmetric positive definite matrix; the identity if None.
        line_search_fn: "strong_wolfe".
        max_line_search_iters: the most evaluations in a line search.
        initial_step_length: the first length that a line search tries.
        dtype: "float32" or "float64", that of initial_position.
        name: accepted for compatibility.

    Returns:
        whether it converged, the number of calls of the function, the position, and the value and the gradient there.

    Examples:
        >>> import oar
        >>> func = lambda x: ((x - oar.to_tensor([1.0, 2.0])) ** 2).sum()
        >>> converged, calls, x, value, gradient = oar.science.minimize_lbfgs(func, oar.zeros([2]))
        >>> [round(number, 4) for number in x.tolist()]
        [1.0, 2.0]
    """
    given = initial_inverse_hessian_estimate
    _check(initial_position, dtype)
    if given is not None:
        given = _checked_estimate(given, initial_position.shape[0])
    search = _Search(objective_func, initial_position, line_search_fn, max_line_search_iters, initial_step_length)
    history: list[tuple[Tensor, Tensor, float]] = []

    def direction(gradient: Tensor) -> Tensor:
        q, used = gradient, []
        for change, bend, weight in reversed(history):
            used.append(ops.sum(change * q) * weight)
            q = q - bend * used[-1]
        r = q if given is None else given @ q
        for change, bend, weight in history:
            r = r + change * (used.pop() - ops.sum(bend * r) * weight)
        return -r

    def learn(change: Tensor, bend: Tensor, curvature: float) -> None:
        history.append((change, bend, 1000.0 if curvature == 0.0 else 1.0 / curvature))
        del history[:-history_size]

    with oar.no_grad():
        converged = search.run(max_iters, tolerance_grad, tolerance_change, direction, learn)
    return search.results(converged)
