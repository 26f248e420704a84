"""The distribution of Lewandowski, Kurowicka and Joe."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import oar
from oar.distribution._limits import smallest
from oar.distribution._parameters import check_positive, sample_shape, to_tensors, to_value
from oar.distribution.beta import Beta
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["LKJCholesky"]


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of square matrices up to a diagonal, row by row. Paddle has this helper, too.

    Args:
        mat: the matrices.
        diag: the last diagonal; 0 is the main one, -1 the one below it.

    Returns:
        a tensor with an axis of elements in place of the last two.

    Examples:
        >>> import oar
        >>> oar.distribution.lkj_cholesky.tril_matrix_to_vec(oar.arange(9).reshape([3, 3]), -1).tolist()
        [3, 6, 7]
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"[tril_matrix_to_vec] diag is {diag}; matrices of {size} columns have {-size} to {size - 1}.")
    places = [row * size + column for row in range(size) for column in range(min(row + diag + 1, size))]
    flat = mat.reshape([*mat.shape[:-2], size * size])
    return oar.index_select(flat, oar.to_tensor(places, dtype="int64"), axis=-1)


def vec_to_tril_matrix(p_flatten: Tensor, dim: int, last_dim: int, flatten_shape: int,
                       sample_shape: tuple[int, ...] = (), diag: int = 0) -> Tensor:  # fmt: skip
    """Matrices whose elements below the main diagonal are given, row by row. Paddle has this helper, too.

    Args:
        p_flatten: the elements, one matrix after the other.
        dim: the rows of a matrix.
        last_dim: how many elements a matrix has.
        flatten_shape: how many elements there are.
        sample_shape: the first axes of the result.
        diag: not used, as in Paddle.

    Returns:
        a tensor of the shape [*sample_shape, matrices, dim, dim].

    Examples:
        >>> import oar
        >>> oar.distribution.lkj_cholesky.vec_to_tril_matrix(oar.to_tensor([1, 2, 3]), 3, 3, 3).tolist()
        [[[0, 0, 0], [1, 0, 0], [2, 3, 0]]]
    """
    rows = p_flatten.reshape([flatten_shape // last_dim, last_dim])
    rows = oar.concat([rows, oar.zeros_like(rows[:, :1])], -1)  # a zero for the other places
    counted = itertools.count()
    places = [next(counted) if row > column else last_dim for row in range(dim) for column in range(dim)]
    matrices = oar.index_select(rows, oar.to_tensor(places, dtype="int64"), axis=-1)
    return matrices.reshape([*sample_shape, rows.shape[0] // math.prod(sample_shape), dim, dim])


class LKJCholesky(Distribution):
    """Lower Cholesky factors of random correlation matrices, whose density is the determinant to the power of
    ``concentration - 1``: 1 is uniform, larger values prefer correlations near 0.

    Args:
        dim: the size of the matrices, at least 2.
        concentration: the parameter; positive.
        sample_method: how to draw, ``"onion"`` or ``"cvine"``; the distribution is the same.

    Examples:
        >>> import oar
        >>> from oar.distribution import LKJCholesky
        >>> factors = LKJCholesky(3, 2.0).sample([5])
        >>> factors.shape
        [5, 3, 3]
        >>> oar.allclose((factors * factors).sum(-1), oar.ones([5, 3])).item()
        True
    """

    concentration: Tensor

    def __init__(self, dim: int = 2, concentration: Parameter = 1.0, sample_method: str = "onion") -> None:
        if not isinstance(dim, int):
            raise TypeError(f"[LKJCholesky] dim must be an int, but got {dim!r}.")
        if dim < 2:
            raise ValueError(f"[LKJCholesky] dim must be at least 2, but got {dim}.")
        if sample_method not in ("onion", "cvine"):
            raise ValueError(f"[LKJCholesky] sample_method must be 'onion' or 'cvine', but got {sample_method!r}.")
        check_positive("LKJCholesky", tensors=True, concentration=concentration)
        (self.concentration,) = to_tensors("LKJCholesky", concentration=concentration)
        self.dim = dim
        self.sample_method = sample_method
        self.dtype = self.concentration.dtype
        super().__init__(self.concentration.shape, [dim, dim])

    def sample(self, sample_shape: SampleShape = ()) -> Tensor:
        """Draw factors.

        Args:
            sample_shape: how many to draw. The result has this shape, then the batch shape, then two axes of ``dim``.

        Returns:
            a tensor.
        """
        with oar.no_grad():
            return self._onion(sample_shape) if self.sample_method == "onion" else self._cvine(sample_shape)

    def _onion(self, shape: SampleShape) -> Tensor:
        """Row by row: a direction, spread evenly, times the square root of a beta number."""
        size = [*sample_shape(shape), *self._batch_shape]
        row = oar.arange(1, self.dim, dtype=self.dtype)
        lengths = Beta(row / 2, self.concentration.unsqueeze(-1) + (self.dim - 1 - row) / 2).sample(sample_shape(shape))
        normal = oar.standard_normal([*size, self.dim - 1, self.dim], self.dtype).tril()
        direction = normal / normal.square().sum(-1, keepdim=True).sqrt()
        below = direction * lengths.sqrt().unsqueeze(-1)
        diagonal = (1 - lengths).clip(min=smallest(self.dtype)).sqrt()
        return self._with_diagonal(below, diagonal)

    def _cvine(self, shape: SampleShape) -> Tensor:
        """Column by column: partial correlations, of which each takes its share of what the ones before have left."""
        column = oar.arange(self.dim - 1, dtype=self.dtype)
        spread = self.concentration.unsqueeze(-1) + (self.dim - 2 - column) / 2
        spread = oar.broadcast_to(spread.unsqueeze(-2), [*self._batch_shape, self.dim - 1, self.dim - 1])
        partial = (2 * Beta(spread, spread).sample(sample_shape(shape)) - 1).tril()
        left = oar.sqrt((1 - partial.square()).clip(min=smallest(self.dtype))).cumprod(-1)
        before = oar.concat([oar.ones_like(left[..., :1]), left[..., :-1]], -1)
        below = oar.concat([partial * before, oar.zeros_like(left[..., :1])], -1)
        return self._with_diagonal(below, oar.diagonal(left, 0, -2, -1))

    def _with_diagonal(self, below: Tensor, diagonal: Tensor) -> Tensor:
        """The factor whose rows after the first are given without their diagonal."""
        first = oar.zeros_like(below[..., :1, :])
        diagonal = oar.concat([oar.ones_like(diagonal[..., :1]), diagonal], -1)
        return oar.concat([first, below], -2) + oar.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        value = to_value(value, self.concentration)
        row = oar.arange(1, self.dim, dtype=self.dtype)
        concentration = self.concentration.unsqueeze(-1)
        spread = concentration + (self.dim - 1 - row) / 2
        diagonal = oar.diagonal(value, 0, -2, -1)[..., 1:]
        # Each row is a point of a ball of as many axes as it has elements before the diagonal.
        volume = row / 2 * math.log(math.pi) + spread.lgamma() - (concentration + (self.dim - 1) / 2).lgamma()
        return (2 * (spread - 1) * diagonal.log() - volume).sum(-1)
