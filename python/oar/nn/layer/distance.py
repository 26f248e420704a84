"""Distances and angles as layers."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Layer):
    """The p-norm of ``x - y + epsilon`` along the last axis.

    Args:
        p: the p of the norm.
        epsilon: a small number that avoids division by zero.
        keepdim: whether reduced axes stay, with size 1.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PairwiseDistance()(oar.to_tensor([[0.0, 0.0]]), oar.to_tensor([[3.0, 4.0]]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [4.99999857])
    """

    def __init__(
        self, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self.p = p
        self.epsilon = epsilon
        self.keepdim = keepdim
        self.name = name

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return F.pairwise_distance(x, y, self.p, self.epsilon, self.keepdim)

    def extra_repr(self) -> str:
        text = f"p={self.p}, epsilon={self.epsilon}, keepdim={self.keepdim}"
        return text + (f", name={self.name}" if self.name else "")


class CosineSimilarity(Layer):
    """The cosine of the angle between vectors along an axis.

    Args:
        axis: the axis to work along; a negative one counts from the end.
        eps: a small number that avoids division by zero.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.CosineSimilarity()(oar.to_tensor([[1.0, 0.0]]), oar.to_tensor([[1.0, 1.0]]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.70710677])
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self._axis = axis
        self._eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self._axis, self._eps)

    def extra_repr(self) -> str:
        return f"axis={self._axis}, eps={self._eps}"
