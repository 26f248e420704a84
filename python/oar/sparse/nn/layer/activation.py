"""Activations of sparse tensors, as layers."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn.layer.layers import Layer
from oar.sparse.nn import functional as F

__all__ = ["LeakyReLU", "ReLU", "ReLU6", "Softmax"]


class ReLU(Layer):
    """``sparse.nn.functional.relu`` as a layer.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 3.0], [3])
        >>> oar.sparse.nn.ReLU()(x).values().tolist()
        [0.0, 3.0]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x, self._name)

    def extra_repr(self) -> str:
        return f"name={self._name}" if self._name else ""


class ReLU6(ReLU):
    """``sparse.nn.functional.relu6`` as a layer.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 8.0], [3])
        >>> oar.sparse.nn.ReLU6()(x).values().tolist()
        [0.0, 6.0]
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu6(x, self._name)


class LeakyReLU(Layer):
    """``sparse.nn.functional.leaky_relu`` as a layer.

    Args:
        negative_slope: the slope for negative elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 8.0], [3])
        >>> oar.sparse.nn.LeakyReLU(0.5)(x).values().tolist()
        [-1.0, 8.0]
    """

    def __init__(self, negative_slope: float = 0.01, name: str | None = None) -> None:
        super().__init__()
        self._negative_slope, self._name = negative_slope, name

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self._negative_slope, self._name)

    def extra_repr(self) -> str:
        return f"negative_slope={self._negative_slope}" + (f", name={self._name}" if self._name else "")


class Softmax(Layer):
    """``sparse.nn.functional.softmax`` as a layer.

    Args:
        axis: the axis; for CSR tensors the last one.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_csr_tensor([0, 2, 3], [0, 1, 2], [1.0, 1.0, 5.0], [2, 3])
        >>> oar.sparse.nn.Softmax()(x).values().tolist()
        [0.5, 0.5, 1.0]
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__()
        self._axis, self._name = axis, name

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self._axis, self._name)

    def extra_repr(self) -> str:
        return f"axis={self._axis}" + (f", name={self._name}" if self._name else "")
