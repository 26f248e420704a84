"""Pooling layers."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["AvgPool2D", "MaxPool2D"]


class _Pool2D(Layer):
    def extra_repr(self) -> str:
        return f"kernel_size={self.ksize}, stride={self.stride}, padding={self.padding}"


class MaxPool2D(_Pool2D):
    """The largest value of each window.

    Args:
        kernel_size: an integer or ``(height, width)``.
        stride: the same; ``kernel_size`` when None.
        padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
        return_mask: also return where the largest values stood.
        ceil_mode: keep windows that reach over the edge.
        data_format: ``'NCHW'`` or ``'NHWC'``.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.ksize = kernel_size
        self.stride = stride
        self.padding = padding
        self.return_mask = return_mask
        self.ceil_mode = ceil_mode
        self.data_format = data_format
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(
            x, self.ksize, self.stride, self.padding, self.return_mask, self.ceil_mode, self.data_format
        )


class AvgPool2D(_Pool2D):
    """The mean of each window.

    Args:
        kernel_size: an integer or ``(height, width)``.
        stride: the same; ``kernel_size`` when None.
        padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
        ceil_mode: keep windows that reach over the edge.
        exclusive: padding does not count towards the mean.
        divisor_override: divide by this instead of the window's size.
        data_format: ``'NCHW'`` or ``'NHWC'``.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: float | None = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.ksize = kernel_size
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.exclusive = exclusive
        self.divisor = divisor_override
        self.data_format = data_format
        self.name = name

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(
            x, self.ksize, self.stride, self.padding, self.ceil_mode, self.exclusive, self.divisor,
            self.data_format,
        )  # fmt: skip
