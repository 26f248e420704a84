"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oar._C import Tensor
from oar.framework.parameter import Parameter
from oar.nn import functional as F
from oar.nn.initializer import Normal
from oar.nn.layer.layers import Layer

__all__ = ["Conv2D"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _per_axis(value: Any, dims: int, what: str) -> list[int]:
    """``value`` as a list with one integer per spatial axis."""
    if isinstance(value, int):
        return [value] * dims
    values = list(value)
    if len(values) != dims or not all(isinstance(item, int) for item in values):
        raise ValueError(f"{what} should be an integer or a list of {dims} integers, but received {value!r}.")
    return values


class _ConvNd(Layer):
    """What convolutions of any number of axes share."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        dims: int,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        padding_mode: str,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
    ) -> None:
        super().__init__()
        if weight_attr is False:
            raise AssertionError("weight_attr should not be False in Conv.")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got '{padding_mode}'.")
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise TypeError(f"With padding_mode '{padding_mode}', padding must be an int.")
        if in_channels % groups:
            raise ValueError(f"in_channels ({in_channels}) must be divisible by groups ({groups}).")
        self._in_channels = in_channels
        self._out_channels = out_channels
        self._kernel_size = _per_axis(kernel_size, dims, "kernel_size")
        self._stride = _per_axis(stride, dims, "stride")
        self._dilation = _per_axis(dilation, dims, "dilation")
        self._padding = padding
        self._padding_mode = padding_mode
        self._groups = groups
        self._data_format = data_format
        self._param_attr = weight_attr
        self._bias_attr = bias_attr
        deviation = math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels))
        self.weight = self.create_parameter(
            [out_channels, in_channels // groups, *self._kernel_size],
            weight_attr,
            default_initializer=Normal(0.0, deviation),
        )
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def extra_repr(self) -> str:
        ones = [1] * len(self._kernel_size)
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        if self._stride != ones:
            text += f", stride={self._stride}"
        if self._padding != 0:
            text += f", padding={self._padding}"
        if self._padding_mode != "zeros":
            text += f", padding_mode={self._padding_mode}"
        if self._dilation != ones:
            text += f", dilation={self._dilation}"
        if self._groups != 1:
            text += f", groups={self._groups}"
        return f"{text}, data_format={self._data_format}"


class Conv2D(_ConvNd):
    """Convolution over two spatial axes, with a weight of shape ``[out, in / groups, kh, kw]``.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: an integer or ``(height, width)``; so are ``stride`` and ``dilation``.
        padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
        groups: input and output channels are split into this many independent parts.
        padding_mode: ``'zeros'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
        weight_attr: attributes of the weight.
        bias_attr: attributes of the bias; False for none.
        data_format: ``'NCHW'`` or ``'NHWC'``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Any = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"data_format must be 'NCHW' or 'NHWC', but got '{data_format}'.")
        super().__init__(
            in_channels, out_channels, kernel_size, 2, stride, padding, dilation, groups, padding_mode,
            weight_attr, bias_attr, data_format,
        )  # fmt: skip
        self._border = None if padding_mode == "zeros" else [padding] * 4
        self._inner_padding = padding if padding_mode == "zeros" else 0

    def forward(self, x: Tensor) -> Tensor:
        if self._border is not None:
            x = F.pad(x, self._border, mode=self._padding_mode, data_format=self._data_format)
        return F.conv2d(
            x, self.weight, self.bias, self._stride, self._inner_padding, self._dilation, self._groups,
            self._data_format,
        )  # fmt: skip
