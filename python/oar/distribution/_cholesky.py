"""Triangular factors of small matrices, from ops that have derivatives of any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar

if TYPE_CHECKING:
    from oar._C import Tensor

__all__ = ["cholesky", "solve_lower", "turned"]


def turned(matrix: Tensor) -> Tensor:
    """The transposed matrices."""
    return oar.transpose(matrix, [*range(matrix.ndim - 2), -1, -2])


def cholesky(matrix: Tensor) -> Tensor:
    """The lower triangle L with L @ L.T = matrix; NaN if the matrix is not positive definite. Column by column."""
    size = matrix.shape[-1]
    rest = (matrix + turned(matrix)) / 2
    columns = []
    for done in range(size):
        column = rest[..., :1] / rest[..., :1, :1].sqrt()
        above = oar.zeros([*matrix.shape[:-2], done, 1], matrix.dtype)
        columns.append(oar.concat([above, column], -2) if done else column)
        below = column[..., 1:, :]
        rest = rest[..., 1:, 1:] - oar.matmul(below, turned(below))
    return oar.concat(columns, -1)


def solve_lower(lower: Tensor, right: Tensor) -> Tensor:
    """The X with lower @ X = right, row by row."""
    rows = [right[..., :1, :] / lower[..., :1, :1]]
    for row in range(1, lower.shape[-1]):
        known = oar.matmul(lower[..., row : row + 1, :row], oar.concat(rows, -2))
        rows.append((right[..., row : row + 1, :] - known) / lower[..., row : row + 1, row : row + 1])
    return oar.concat(rows, -2)
