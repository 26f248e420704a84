"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import Tensor
from oar.distribution._cholesky import cholesky, solve_lower, turned
from oar.distribution._parameters import readable, to_tensor, to_tensors, to_value
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """The normal distribution of vectors. Exactly one of the three matrices is given.

    Args:
        loc: the means, along the last axis. A number stands for a vector of one element.
        covariance_matrix: the covariances; symmetric and positive definite.
        precision_matrix: the inverse of the covariances.
        scale_tril: a lower triangle L with a positive diagonal; ``L @ L.T`` are the covariances.

    Examples:
        >>> import oar
        >>> from oar.distribution import MultivariateNormal
        >>> normal = MultivariateNormal(oar.zeros([2]), oar.to_tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> normal.sample([5]).shape
        [5, 2]
        >>> normal.log_prob(oar.to_tensor([1.0, 1.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -2.72051644)
    """

    loc: Tensor

    def __init__(self, loc: Parameter, covariance_matrix: Parameter | None = None,
                 precision_matrix: Parameter | None = None, scale_tril: Parameter | None = None) -> None:  # fmt: skip
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("[MultivariateNormal] exactly one of covariance_matrix, precision_matrix and scale_tril must be "
                             f"given, but got {' and '.join(given) or 'none'}.")  # fmt: skip
        (name,) = given
        (mean,) = to_tensors("MultivariateNormal", loc=loc)
        matrix = to_tensor("MultivariateNormal", name, given[name], mean.dtype.name)
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"[MultivariateNormal] {name} has the shape {list(matrix.shape)}; its last two axes must be a square.")
        mean = mean.reshape([1]) if mean.ndim == 0 else mean
        size = matrix.shape[-1]
        if mean.shape[-1] not in (1, size):
            raise ValueError(f"[MultivariateNormal] loc has {mean.shape[-1]} elements, but {name} is of {size} by {size}.")
        batch = oar.broadcast_shape(matrix.shape[:-2], mean.shape[:-1])
        self.dtype = mean.dtype
        self.loc = oar.broadcast_to(mean, [*batch, size])
        whole = oar.broadcast_to(matrix, [*batch, size, size])
        self.covariance_matrix = whole if name == "covariance_matrix" else None
        self.precision_matrix = whole if name == "precision_matrix" else None
        self.scale_tril = whole if name == "scale_tril" else None
        self._tril = self._unbroadcasted_scale_tril = _TRIL_OF[name](matrix)  # the second is its name in Paddle
        if name != "scale_tril" and readable(self._tril) and not bool(self._tril.isfinite().all()):
            raise ValueError(f"[MultivariateNormal] {name} is not positive definite.")
        super().__init__(batch, [size])

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The variance of each element: the diagonal of the covariances."""
        return oar.broadcast_to(self._tril.square().sum(-1), [*self._batch_shape, *self._event_shape])

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        noise = oar.standard_normal([*self._extend_shape(shape), 1], self.dtype)
        return self.loc + oar.matmul(self._tril, noise).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        away = (to_value(value, self.loc) - self.loc).unsqueeze(-1)
        distance = solve_lower(self._tril, away).square().sum([-2, -1])
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
        return oar.broadcast_to(entropy, self._batch_shape)

    def _half_log_det(self) -> Tensor:
        return oar.diagonal(self._tril, 0, -2, -1).log().sum(-1)

    def kl_divergence(self, other: Distribution) -> Tensor:
        other = of_class(MultivariateNormal, other)
        if self._event_shape != other._event_shape:
            raise ValueError(f"[MultivariateNormal] vectors of {self._event_shape[0]} and {other._event_shape[0]} elements "
                             "cannot be compared.")  # fmt: skip
        spread = solve_lower(other._tril, self._tril).square().sum([-2, -1])
        distance = solve_lower(other._tril, (self.loc - other.loc).unsqueeze(-1)).square().sum([-2, -1])
        return other._half_log_det() - self._half_log_det() + 0.5 * (spread + distance - self._event_shape[0])


def _tril_of_precision(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse, from that of the precision with its axes reversed."""
    reverse = oar.flip(cholesky(oar.flip(precision, [-2, -1])), [-2, -1])
    return solve_lower(turned(reverse), oar.eye(precision.shape[-1], dtype=precision.dtype))


_TRIL_OF = {"covariance_matrix": cholesky, "precision_matrix": _tril_of_precision, "scale_tril": lambda matrix: matrix}
