"""Masks of n:m sparsity, as arrays."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np

__all__ = ["calculate_density"]

_MOST_PATTERNS = 100_000


def calculate_density(x: Any) -> float:
    """The share of elements that are not zero.

    Args:
        x: an array or a tensor.

    Returns:
        a number from 0 to 1.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.incubate.asp.calculate_density(np.array([[0, 1, 3, 0], [1, 1, 0, 1]]))
        0.625
    """
    array = np.asarray(x)
    if array.size == 0:
        raise ValueError("[calculate_density] x has no elements.")
    return float(np.count_nonzero(array) / array.size)


def _row_blocks(matrix: np.ndarray, m: int) -> np.ndarray:
    """[rows, blocks, m]; the last block is filled up with zeros."""
    padded = np.pad(np.abs(matrix), [(0, 0), (0, -matrix.shape[1] % m)])
    return padded.reshape(len(matrix), -1, m)


def _square_blocks(matrix: np.ndarray, m: int) -> np.ndarray:
    """[blocks of rows, blocks of columns, m, m]; the last ones are filled up with zeros."""
    padded = np.pad(np.abs(matrix), [(0, -size % m) for size in matrix.shape])
    return padded.reshape(padded.shape[0] // m, m, -1, m).transpose(0, 2, 1, 3)


def _joined(blocks: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns, m, _ = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(rows * m, columns * m)[:shape[0], :shape[1]]


def mask_1d(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """Each m neighbours in a row lose their n smallest."""
    blocks = _row_blocks(matrix, m)
    mask = np.ones_like(blocks)
    np.put_along_axis(mask, np.argsort(blocks, -1, kind="stable")[..., :n], 0, -1)
    return mask.reshape(len(matrix), -1)[:, :matrix.shape[1]]


def mask_2d_greedy(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """Each m x m block keeps its largest elements, one by one, while their row and column have room."""
    blocks = _square_blocks(matrix, m)
    flat = blocks.reshape(-1, m * m)
    each, keep = np.arange(len(flat)), m - n
    mask = np.zeros_like(flat)
    in_row, in_column = np.zeros((2, len(flat), m), int)
    for at in np.argsort(-flat, 1, kind="stable").T:
        row, column = at // m, at % m
        room = (in_row[each, row] < keep) & (in_column[each, column] < keep)
        mask[each, at] = room
        in_row[each, row] += room
        in_column[each, column] += room
    return _joined(mask.reshape(blocks.shape), matrix.shape)


@lru_cache(maxsize=8)
def _patterns(n: int, m: int) -> np.ndarray:
    """All m x m blocks with m - n ones in each row and at most as many in each column, [patterns, m * m]."""
    if comb(m, n) ** m > _MOST_PATTERNS:
        raise ValueError(f"mask_algo 'mask_2d_best' has too many patterns for n={n} and m={m}. Use 'mask_2d_greedy'.")
    rows = [np.isin(np.arange(m), kept) for kept in combinations(range(m), m - n)]
    blocks = np.array(list(product(rows, repeat=m)))
    return blocks[(blocks.sum(1) <= m - n).all(1)].reshape(-1, m * m).astype(float)


def mask_2d_best(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """Each m x m block keeps what has the largest sum, with at least n zeros in each row and column."""
    blocks, patterns = _square_blocks(matrix, m), _patterns(n, m)
    best = np.argmax(blocks.reshape(-1, m * m) @ patterns.T, 1)
    return _joined(patterns[best].reshape(blocks.shape), matrix.shape)


ALGORITHMS = {"mask_1d": mask_1d, "mask_2d_greedy": mask_2d_greedy, "mask_2d_best": mask_2d_best}


def mask_of(weight: np.ndarray, n: int, m: int, algorithm: str) -> np.ndarray:
    """The mask of a weight, along the axis that a product sums over: [in, out] or [out, in, height, width]."""
    summed = 0 if weight.ndim == 2 else 1
    rows = np.moveaxis(weight, summed, -1)
    mask = ALGORITHMS[algorithm](rows.reshape(-1, rows.shape[-1]).astype(float), n, m).reshape(rows.shape)
    return np.ascontiguousarray(np.moveaxis(mask, -1, summed).astype(weight.dtype))
