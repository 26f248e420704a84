"""The spectral norm of weights, as a layer."""

from __future__ import annotations

import math

import oar
from oar._C import Tensor
from oar.nn.initializer import Normal
from oar.nn.layer.layers import Layer

__all__ = ["SpectralNorm"]


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, which power iterations find.

    The weight is taken as a matrix with one row for each index along ``dim``. Each call starts from the
    same vectors ``weight_u`` and ``weight_v``; gradients take what the iterations find as given.

    Args:
        weight_shape: the shape of the weight.
        dim: the axis that becomes the rows.
        power_iters: the number of iterations.
        eps: keeps divisions from zero.
        dtype: float32 or float64.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> weight = oar.to_tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> nn.SpectralNorm([2, 2], power_iters=20)(weight).max().item()
        1.0
    """

    def __init__(
        self, weight_shape: list[int], dim: int = 0, power_iters: int = 1, eps: float = 1e-12, dtype: str = "float32"
    ) -> None:
        super().__init__()
        shape = list(weight_shape)
        assert math.prod(shape) > 0, f"Any dimension of `weight_shape` cannot be equal to 0, as in {shape}."
        assert dim < len(shape), f"`dim` is {dim}; it should be less than the length of `weight_shape`, {len(shape)}."
        if dim not in (0, 1):
            raise ValueError(f"[SpectralNorm] dim is {dim}; it can be 0 or 1, the axis of outputs.")
        self._dim, self._power_iters, self._eps, self._dtype = dim, power_iters, eps, dtype
        self.weight_u = self._vector(shape[dim])
        self.weight_v = self._vector(math.prod(shape) // shape[dim])

    def _vector(self, size: int) -> Tensor:
        made = self.create_parameter([size], dtype=self._dtype, default_initializer=Normal(0.0, 1.0))
        made.stop_gradient = True
        return made

    def forward(self, x: Tensor) -> Tensor:
        return normalised(x, self.weight_u, self.weight_v, self._dim, self._power_iters, self._eps)


def normalised(x: Tensor, u: Tensor, v: Tensor, dim: int, power_iters: int, eps: float) -> Tensor:
    """``x`` divided by its largest singular value, which power iterations from ``u`` and ``v`` find."""
    def unit(vector: Tensor) -> Tensor:
        return vector / (oar.sqrt(oar.sum(oar.square(vector))) + eps)

    front = oar.moveaxis(x, dim, 0)
    matrix = oar.reshape(front, [front.shape[0], -1])
    with oar.no_grad():
        for _ in range(power_iters):
            v = unit(oar.matmul(matrix, u, transpose_x=True))
            u = unit(oar.matmul(matrix, v))
    return x / oar.sum(u * oar.matmul(matrix, v))
