"""Convolutions of sparse images, as layers."""

from __future__ import annotations

import math
from typing import Any

from oar._C import Tensor
from oar.framework.parameter import Parameter
from oar.nn._axes import Axes, for_axes
from oar.nn.functional._window import FORMATS
from oar.nn.initializer import Normal
from oar.nn.layer.layers import Layer
from oar.sparse.nn.functional.conv import convolve, per_axis

__all__ = ["Conv2D", "Conv3D", "SubmConv2D", "SubmConv3D"]


class _SparseConv(Layer):
    """What sparse convolutions of any number of axes share."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, axes: int, subm: bool, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, groups: int, padding_mode: str, weight_attr: Any, bias_attr: Any, data_format: str,
    ) -> None:
        super().__init__()
        if weight_attr is False:
            raise AssertionError("weight_attr should not be False in Conv.")
        if padding_mode != "zeros":
            raise AssertionError(f"padding_mode is {padding_mode!r}; sparse images are padded with 'zeros'.")
        if groups != 1:
            raise AssertionError(f"groups is {groups}; sparse convolutions have one group.")
        if data_format != FORMATS[axes][1]:
            raise ValueError(f"data_format is {data_format!r}; sparse images have their channels last: "
                             f"{FORMATS[axes][1]!r}.")
        self._axes, self._subm = axes, subm
        self._in_channels, self._out_channels = in_channels, out_channels
        self._kernel_size = per_axis(kernel_size, axes, "kernel_size")
        self._stride, self._dilation = per_axis(stride, axes, "stride"), per_axis(dilation, axes, "dilation")
        self._padding, self._padding_mode = padding, padding_mode
        self._groups, self._data_format = groups, data_format
        initializer = Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        shape = [*self._kernel_size, in_channels, out_channels]
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=initializer)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x: Tensor) -> Tensor:
        return convolve(
            type(self).__name__, self._axes, self._subm, x, self.weight, self.bias, self._stride, self._padding,
            self._dilation, self._groups, self._data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        if any(s != 1 for s in self._stride):
            text += f", stride={self._stride}"
        if self._padding != 0:
            text += f", padding={self._padding}"
        if any(d != 1 for d in self._dilation):
            text += f", dilation={self._dilation}"
        return f"{text}, data_format={self._data_format}"


def _conv(axes: Axes) -> type[_SparseConv]:
    class Conv(_SparseConv):
        """The convolution of sparse images over {axes}. The result holds every element that one of the input reaches.

        Args:
            in_channels: the number of channels of the input.
            out_channels: the number of channels of the result.
            kernel_size: the size of the kernel: {size}.
            stride: the steps of the kernel: {size}.
            padding: zeros at both ends of each axis: {size}, ``'SAME'`` or ``'VALID'``.
            dilation: the distance between the taps of the kernel: {size}.
            groups: 1.
            padding_mode: ``'zeros'``.
            weight_attr: attributes of the weight ``[{kernel}, in_channels, out_channels]``.
            bias_attr: attributes of the bias; False for none.
            data_format: ``'{last}'``.

        Examples:
            >>> import oar
            >>> x = oar.ones([1, {sizes:4}, 2]).to_sparse_coo({n} + 1)
            >>> oar.sparse.nn.Conv{n}D(2, 5, 3)(x).shape
            [1, {sizes:2}, 5]
        """

        def __init__(
            self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", weight_attr: Any = None,
            bias_attr: Any = None, data_format: str = axes.last,
        ) -> None:
            super().__init__(
                axes.count, False, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                padding_mode, weight_attr, bias_attr, data_format,
            )  # fmt: skip

    return Conv


def _subm_conv(axes: Axes) -> type[_SparseConv]:
    class SubmConv(_SparseConv):
        """The submanifold convolution of sparse images over {axes}: the result holds the elements of the input and no
        others.

        Args:
            in_channels: the number of channels of the input.
            out_channels: the number of channels of the result.
            kernel_size: the size of the kernel: {size}.
            stride: accepted for compatibility; it is 1.
            padding: accepted for compatibility; the kernel is centred.
            dilation: the distance between the taps of the kernel: {size}.
            groups: 1.
            padding_mode: ``'zeros'``.
            key: accepted for compatibility.
            weight_attr: attributes of the weight ``[{kernel}, in_channels, out_channels]``.
            bias_attr: attributes of the bias; False for none.
            data_format: ``'{last}'``.
            backend: None or ``'igemm'``; there is one way to compute it.

        Examples:
            >>> import oar
            >>> x = oar.ones([1, {sizes:4}, 2]).to_sparse_coo({n} + 1)
            >>> oar.sparse.nn.SubmConv{n}D(2, 5, 3)(x).shape
            [1, {sizes:4}, 5]
        """

        def __init__(
            self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
            dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", key: str | None = None,
            weight_attr: Any = None, bias_attr: Any = None, data_format: str = axes.last, backend: str | None = None,
        ) -> None:
            if backend not in (None, "igemm"):
                raise AssertionError(f"backend is {backend!r}; it must be None or 'igemm'.")
            super().__init__(
                axes.count, True, in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                padding_mode, weight_attr, bias_attr, data_format,
            )  # fmt: skip

    return SubmConv


Conv2D, Conv3D = for_axes("Conv{n}D", _conv, (2, 3))
SubmConv2D, SubmConv3D = for_axes("SubmConv{n}D", _subm_conv, (2, 3))
