"""Activations of sparse tensors."""

from __future__ import annotations

from oar import _sparse
from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = ["leaky_relu", "relu", "relu6", "softmax"]


@spelled
def relu(x: Tensor, name: str | None = None) -> Tensor:
    """max(x, 0) of each element that a sparse tensor holds.

    Args:
        x: a sparse tensor.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 3.0], [3])
        >>> oar.sparse.nn.functional.relu(x).values().tolist()
        [0.0, 3.0]
    """
    _sparse.require(x, "relu")
    return ops.relu(x)


@spelled
def relu6(x: Tensor, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6) of each element that a sparse tensor holds.

    Args:
        x: a sparse tensor.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 8.0], [3])
        >>> oar.sparse.nn.functional.relu6(x).values().tolist()
        [0.0, 6.0]
    """
    _sparse.require(x, "relu6")
    return ops.relu6(x)


@spelled
def leaky_relu(x: Tensor, negative_slope: float = 0.01, name: str | None = None) -> Tensor:
    """x where it is positive, else negative_slope * x, for each element that a sparse tensor holds.

    Args:
        x: a sparse tensor.
        negative_slope: the slope for negative elements.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 2]], [-2.0, 8.0], [3])
        >>> oar.sparse.nn.functional.leaky_relu(x, 0.5).values().tolist()
        [-1.0, 8.0]
    """
    _sparse.require(x, "leaky_relu")
    return ops.leaky_relu(x, negative_slope)


@spelled
def softmax(x: Tensor, axis: int = -1, name: str | None = None) -> Tensor:
    """The softmax along an axis over the elements that a sparse tensor holds; others count as minus infinity.

    Args:
        x: a sparse tensor.
        axis: the axis; for CSR tensors the last one.

    Returns:
        a sparse tensor with the same elements.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_csr_tensor([0, 2, 3], [0, 1, 2], [1.0, 1.0, 5.0], [2, 3])
        >>> oar.sparse.nn.functional.softmax(x).values().tolist()
        [0.5, 0.5, 1.0]
    """
    _sparse.require(x, "softmax")
    return ops.softmax(x, axis)
