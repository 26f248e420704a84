"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from oar import _C
from oar._C import Tensor, ops
from oar.framework.parameter import Parameter
from oar.nn import functional as F
from oar.nn.functional._window import FORMATS, resolve_padding
from oar.nn.initializer import Normal
from oar.nn._axes import Axes, for_axes
from oar.nn.layer.layers import Layer

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _per_axis(value: Any, dims: int, what: str) -> list[int]:
    """``value`` as a list with one integer per spatial axis."""
    if isinstance(value, int):
        return [value] * dims
    if not isinstance(value, Sequence) or len(value) != dims or not all(isinstance(item, int) for item in value):
        raise _C.ArgumentTypeError(
            f"{what} should be an integer or a list of {dims} integers, but received {value!r}."
        )
    return list(value)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    for what, value in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
        if not isinstance(value, Integral):
            raise _C.ArgumentTypeError(f"{what} should be an integer, but received {value!r}.")
    if groups < 1 or in_channels % groups:
        raise _C.ArgumentValueError(f"in_channels ({in_channels}) must be divisible by groups ({groups}).")
    if out_channels % groups:
        raise _C.ArgumentValueError(f"out_channels ({out_channels}) must be divisible by groups ({groups}).")


def _check_padding(padding: Any, dims: int, data_format: str) -> None:
    numbers, _ = resolve_padding(padding, dims, data_format)
    listed = numbers if isinstance(numbers, Sequence) else [numbers]
    if not all(isinstance(number, Integral) and int(number) >= 0 for number in listed):
        raise _C.ArgumentValueError(f"padding should hold integers from 0 on, but received {padding!r}.")


def convolve(layer: Any, function: Any, x: Tensor, weight: Tensor) -> Tensor:
    """A convolution of x with a weight, with the stride, padding and so on of a layer.

    Args:
        layer: a convolution layer, or another one with its settings.
        function: such as ``conv2d``.
        x: the input.
        weight: the weight.
    """
    if layer._border is not None:
        x = ops.pad_edges(x, layer._border, layer._padding_mode)
    return function(
        x, weight, layer.bias, layer._stride, layer._inner_padding, layer._dilation, layer._groups, layer._data_format
    )


class _ConvNd(Layer):
    """What convolutions of any number of axes share."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        transposed: bool,
        dims: int,
        stride: Any,
        padding: Any,
        padding_mode: str,
        output_padding: Any,
        dilation: Any,
        groups: int,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if weight_attr is False:
            raise AssertionError("weight_attr should not be False in Conv.")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got '{padding_mode}'.")
        if padding_mode != "zeros" and not isinstance(padding, int):
            raise TypeError(f"With padding_mode '{padding_mode}', padding must be an int.")
        if data_format not in FORMATS[dims]:
            first, last = FORMATS[dims]
            raise ValueError(f"data_format must be '{first}' or '{last}', but got '{data_format}'.")
        _check_channels(in_channels, out_channels, groups)
        if dims > 1:  # other lists are possible along one axis
            _check_padding(padding, dims, data_format)
        self._in_channels = in_channels
        self._out_channels = out_channels
        self._kernel_size = _per_axis(kernel_size, dims, "kernel_size")
        self._stride = _per_axis(stride, dims, "stride")
        self._dilation = _per_axis(dilation, dims, "dilation")
        self._padding = padding
        self._padding_mode = padding_mode
        self.output_padding = output_padding
        self._groups = groups
        self._data_format = data_format
        self._param_attr = weight_attr
        self._bias_attr = bias_attr
        self._transposed = transposed
        # Padding that is not zeros is laid around the input first: before and after each of its axes.
        plain, border = [0, 0], [padding] * (2 * dims)
        channels_last = data_format == FORMATS[dims][1]
        around = [*plain, *border, *plain] if channels_last else [*plain, *plain, *border]
        self._border = None if padding_mode == "zeros" else around
        self._inner_padding = padding if padding_mode == "zeros" else 0
        if transposed:
            shape, initializer = [in_channels, out_channels // groups, *self._kernel_size], None
        else:
            shape = [out_channels, in_channels // groups, *self._kernel_size]
            initializer = Normal(0.0, math.sqrt(2.0 / (math.prod(self._kernel_size) * in_channels)))
        self.weight = self.create_parameter(shape, weight_attr, dtype, default_initializer=initializer)
        self.bias = self.create_parameter([out_channels], bias_attr, dtype, is_bias=True)

    # What Paddle's layer hands to its ops, for programs that call these themselves -------------------

    _use_cudnn = False

    @property
    def _padding_algorithm(self) -> str:
        return resolve_padding(self._inner_padding, len(self._kernel_size), self._data_format)[1]

    @property
    def _updated_padding(self) -> list[int]:
        numbers = resolve_padding(self._inner_padding, len(self._kernel_size), self._data_format)[0]
        return [numbers] * len(self._kernel_size) if isinstance(numbers, int) else list(numbers)

    @property
    def _channel_dim(self) -> int:
        dims = len(self._kernel_size)
        return dims + 1 if self._data_format == FORMATS[dims][1] else 1

    @property
    def _op_type(self) -> str:
        each_alone = self._groups == self._in_channels > 1 and self._out_channels % self._in_channels == 0
        depthwise = len(self._kernel_size) == 2 and each_alone and not self._transposed
        return f"{'depthwise_' if depthwise else ''}conv{len(self._kernel_size)}d"

    def _transpose(self, function: Any, x: Tensor, output_size: Any) -> Tensor:
        return function(
            x, self.weight, self.bias, stride=self._stride, padding=self._padding,
            output_padding=self.output_padding if output_size is None else 0, dilation=self._dilation,
            groups=self._groups, output_size=output_size, data_format=self._data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        ones = [1] * len(self._kernel_size)
        text = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        if self._stride != ones:
            text += f", stride={self._stride}"
        if self._padding != 0:
            text += f", padding={self._padding}"
        if self._padding_mode != "zeros":
            text += f", padding_mode={self._padding_mode}"
        if self.output_padding != 0:
            text += f", output_padding={self.output_padding}"
        if self._dilation != ones:
            text += f", dilation={self._dilation}"
        if self._groups != 1:
            text += f", groups={self._groups}"
        return f"{text}, data_format={self._data_format}"


def _convolution(axes: Axes) -> type[_ConvNd]:
    function = f"conv{axes.count}d"

    class Convolution(_ConvNd):
        """Convolution over {axes}, with a weight of shape ``[out, in / groups, {kernel}]``.

        Args:
            in_channels: channels of the input.
            out_channels: channels of the result.
            kernel_size: {size}; likewise ``stride`` and ``dilation``.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``.
            groups: input and output channels are split into this many independent parts.
            padding_mode: ``'zeros'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
            weight_attr: attributes of the weight.
            bias_attr: attributes of the bias; False for none.
            data_format: {formats}.
            bias: whether there is a bias.
            device: the device of the parameters; None is the current one.
            dtype: the dtype of the parameters; None is the default one.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> layer = nn.Conv{n}D(3, 8, 3, stride=2, padding=1)
            >>> layer(oar.ones([2, 3, {sizes:6}])).shape
            [2, 8, {sizes:3}]
            >>> layer.weight.shape
            [8, 3, {sizes:3}]
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
            data_format: str = axes.first,
            *,
            bias: bool = True,
            device: Any = None,
            dtype: Any = None,
        ) -> None:
            super().__init__(
                in_channels, out_channels, kernel_size, False, axes.count, stride, padding, padding_mode, 0, dilation,
                groups, weight_attr, bias_attr if bias else False, data_format, dtype,
            )  # fmt: skip
            if device is not None:
                self.to(device)

        def forward(self, x: Tensor) -> Tensor:
            return convolve(self, getattr(F, function), x, self.weight)

    return Convolution


Conv1D, Conv2D, Conv3D = for_axes("Conv{n}D", _convolution)


def _transposed_convolution(axes: Axes) -> type[_ConvNd]:
    function = f"conv{axes.count}d_transpose"

    class TransposedConvolution(_ConvNd):
        """Transposed convolution over {axes}, with a weight of shape ``[in, out / groups, {kernel}]``.

        Args:
            in_channels: channels of the input.
            out_channels: channels of the result.
            kernel_size: {size}; likewise ``stride`` and ``dilation``.
            padding: an integer, a list, ``'SAME'`` or ``'VALID'``: what the result is cut by.
            output_padding: elements added at the end of the result. A call can name an ``output_size`` instead.
            groups: input and output channels are split into this many independent parts.
            weight_attr: attributes of the weight.
            bias_attr: attributes of the bias; False for none.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> from oar import nn
            >>> nn.Conv{n}DTranspose(3, 8, 2, stride=2)(oar.ones([2, 3, {sizes:4}])).shape
            [2, 8, {sizes:8}]
        """

        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] = 1,
            padding: Any = 0,
            output_padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            groups: int = 1,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = axes.first,
        ) -> None:
            super().__init__(
                in_channels, out_channels, kernel_size, True, axes.count, stride, padding, "zeros", output_padding,
                dilation, groups, weight_attr, bias_attr, data_format,
            )  # fmt: skip

        def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
            return self._transpose(getattr(F, function), x, output_size)

    return TransposedConvolution


_Transposed1D, Conv2DTranspose, Conv3DTranspose = for_axes("Conv{n}DTranspose", _transposed_convolution)


class Conv1DTranspose(_Transposed1D):  # type: ignore[misc, valid-type]
    __doc__ = _Transposed1D.__doc__

    # Paddle has groups before dilation here, and dilation before groups for two and three axes.
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Any = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, weight_attr,
            bias_attr, data_format,
        )  # fmt: skip
