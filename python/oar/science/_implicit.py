"""Derivatives of what an equation defines, by the equation and not through the iterations that solved it."""

from __future__ import annotations

from collections.abc import Callable

import oar
from oar._C import Tensor, ops
from oar.autograd.py_layer import PyLayer


class _Once(PyLayer):
    """Passes a cotangent on; its own derivative is an error."""

    @staticmethod
    def forward(ctx, cotangent, residual, owner):
        ctx.owner = owner
        return ops.assign(cotangent)

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError(f"[{ctx.owner}] has first derivatives only. For higher ones, differentiate the iterations: "
                                  "write the loop with ordinary ops.")


def once(cotangent: Tensor, anchor: Tensor, owner: str) -> Tensor:
    """The cotangent, computed without recording. To differentiate it again is an error: the result would be wrong.

    Args:
        cotangent: what a backward returns.
        anchor: a recorded tensor that it depends on.
        owner: the function to name in the error.
    """
    return _Once.apply(cotangent, anchor, owner)


class _Attach(PyLayer):
    @staticmethod
    def forward(ctx, residual, solution_of, solve_transposed, owner):
        ctx.save_for_backward(residual)
        ctx.solve_transposed, ctx.owner = solve_transposed, owner
        return solution_of()

    @staticmethod
    def backward(ctx, grad):
        (residual,) = ctx.saved_tensor()
        with oar.no_grad():
            solved = ctx.solve_transposed(grad)
        return once(solved, residual, ctx.owner)


def attach(solution: Tensor, residual: Tensor, solve_transposed: Callable[[Tensor], Tensor], owner: str) -> Tensor:
    """The solution, with the derivative that the equation gives it.

    To first order the solution moves by ``J^-1 residual``, where the residual is recorded as a function of everything but
    the solution. So ``J^-T`` times a cotangent is the residual's cotangent.

    Args:
        solution: a solution, not recorded.
        residual: what is zero at the solution, recorded at it.
        solve_transposed: ``J^-T`` times a vector, where the solution moves by ``J^-1`` times the residual.
        owner: the function to name in errors.
    """
    if residual.stop_gradient or not oar.is_grad_enabled():
        return solution
    # As a function: a tensor would be one more input, with a gradient of its own.
    return _Attach.apply(residual, lambda: ops.assign(solution), solve_transposed, owner)
