"""Layers whose arguments are PyTorch's where Paddle's differ."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.compat.nn import functional
from oar.compat.nn.attention import MultiheadAttention
from oar.compat.nn.linear import Linear
from oar.nn import functional as F
from oar.nn.layer.layers import Layer
from oar.nn.layer.vision import Unfold as _Unfold

__all__ = [
    "AvgPool1D", "AvgPool1d", "AvgPool2D", "AvgPool2d", "AvgPool3D", "AvgPool3d", "Linear", "MultiheadAttention",
    "Softmax", "Unfold",
]  # fmt: skip


class AvgPool1D(Layer):
    """The mean of each window. Zeros of the margin count, unless ``count_include_pad`` says otherwise.

    Args:
        kernel_size: the size of the windows.
        stride: the distance of windows; None is their size.
        padding: the margin.
        ceil_mode: whether windows that reach over the edge are kept.
        count_include_pad: whether the margin counts.

    Examples:
        >>> import oar
        >>> oar.compat.nn.AvgPool1D(2)(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]])).tolist()
        [[[2.0, 3.0]]]
    """

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.ceil_mode = kernel_size, padding, ceil_mode
        self.stride = kernel_size if stride is None else stride
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, not self.count_include_pad, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2D(AvgPool1D):
    """The mean of each window of images. Zeros of the margin count, unless ``count_include_pad`` says otherwise.

    Args:
        kernel_size: the size of the windows.
        stride: the distance of windows; None is their size.
        padding: the margin.
        ceil_mode: whether windows that reach over the edge are kept.
        count_include_pad: whether the margin counts.
        divisor_override: what sums are divided by instead of the number of elements, or None.

    Examples:
        >>> import oar
        >>> oar.compat.nn.AvgPool2D(2)(oar.ones([1, 1, 4, 4])).shape
        [1, 1, 2, 2]
    """

    _pool = staticmethod(F.avg_pool2d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: float | None = None) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                          not self.count_include_pad, self.divisor_override)


class AvgPool3D(AvgPool2D):
    """The mean of each window of volumes. The arguments are those of ``AvgPool2D``.

    Examples:
        >>> import oar
        >>> oar.compat.nn.AvgPool3D(2)(oar.ones([1, 1, 4, 4, 4])).shape
        [1, 1, 2, 2, 2]
    """

    _pool = staticmethod(F.avg_pool3d)


class Softmax(Layer):
    """exp(input) divided by its sum along an axis.

    Args:
        dim: the axis. None is 0 for tensors of 0, 1 and 3 axes, else 1.

    Examples:
        >>> import oar
        >>> oar.compat.nn.Softmax(1)(oar.zeros([1, 4])).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self._dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self._dim)

    def extra_repr(self) -> str:
        return f"dim={self._dim}"


class Unfold(_Unfold):
    """The windows of images as columns.

    Args:
        kernel_size: the size of the windows.
        dilation: the distance of elements within a window.
        padding: the margin.
        stride: the distance of windows.

    Examples:
        >>> import oar
        >>> oar.compat.nn.Unfold(2, stride=2)(oar.ones([1, 1, 4, 4])).shape
        [1, 4, 4]
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)

    def forward(self, input: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(input)


AvgPool1d, AvgPool2d, AvgPool3d = AvgPool1D, AvgPool2D, AvgPool3D
