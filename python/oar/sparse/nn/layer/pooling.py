"""Pooling of sparse images, as a layer."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn.layer.layers import Layer
from oar.sparse.nn import functional as F

__all__ = ["MaxPool3D"]


class MaxPool3D(Layer):
    """``sparse.nn.functional.max_pool3d`` as a layer.

    Args:
        kernel_size: the size of the windows: an integer or ``(depth, height, width)``.
        stride: the steps of the windows; None takes their size.
        padding: at both ends of each axis: an integer or ``(depth, height, width)``.
        return_mask: False.
        ceil_mode: whether windows may reach over the end.
        data_format: ``'NDHWC'``.

    Examples:
        >>> import oar
        >>> x = oar.ones([1, 4, 4, 4, 2]).to_sparse_coo(4)
        >>> oar.sparse.nn.MaxPool3D(2)(x).shape
        [1, 2, 2, 2, 2]
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NDHWC",
        name: str | None = None,
    ) -> None:
        super().__init__()
        if return_mask:
            raise ValueError("return_mask is True; the pooling of sparse images has no mask.")
        self.ksize, self.stride, self.padding = kernel_size, stride, padding
        self.return_mask, self.ceil_mode, self.data_format, self.name = return_mask, ceil_mode, data_format, name

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool3d(x, self.ksize, self.stride, self.padding, self.ceil_mode, self.data_format)

    def extra_repr(self) -> str:
        return f"kernel_size={self.ksize}, stride={self.stride}, padding={self.padding}"
