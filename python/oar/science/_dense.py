"""Solving small dense systems of equations, with derivatives of any order."""

from __future__ import annotations

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.autograd.py_layer import PyLayer


class _Solve(PyLayer):
    @staticmethod
    def forward(ctx, matrix, right):
        solution = oar.to_tensor(np.linalg.solve(matrix.numpy(), right.numpy()))
        ctx.save_for_backward(matrix, solution)
        return solution

    @staticmethod
    def backward(ctx, grad):
        matrix, solution = ctx.saved_tensor()
        transposed = ops.transpose(matrix, [1, 0])
        if matrix.is_complex():
            transposed, solution = ops.conj(transposed), ops.conj(solution)
        right = solve(transposed, grad)
        return -ops.matmul(right, ops.transpose(solution, [1, 0])), right


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """matrix^-1 right, for a matrix [n, n] and columns [n, k]."""
    return _Solve.apply(matrix, right)
