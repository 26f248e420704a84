"""Layers of static programs that convolve."""

from __future__ import annotations

import math
from typing import Any

from oar._C import Tensor, ops
from oar.nn import functional as F
from oar.nn.initializer import Normal
from oar.static.nn.maker import LayerMaker, sizes, static_only

__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "deform_conv2d"]


def _fan_in_normal(shape: list[int]) -> Normal:
    return Normal(0.0, math.sqrt(2.0 / max(math.prod(shape[1:]), 1)))


def channels_of(x: Tensor, data_format: str) -> int:
    return x.shape[1] if data_format[1] == "C" else x.shape[-1]


def _conv(kind: str, input: Tensor, num_filters: int, filter_size: Any, groups: int | None, param_attr: Any,
          bias_attr: Any, act: str | None, name: str | None, data_format: str, rest: tuple) -> Tensor:
    axes = int(kind[4])
    maker = LayerMaker(kind, name, input.dtype)
    channels, groups = channels_of(input, data_format), groups or 1
    if channels % groups or num_filters % groups:
        raise ValueError(f"[{kind}] {channels} channels and {num_filters} filters do not fall into {groups} groups.")
    shape = [num_filters, channels // groups, *sizes(filter_size, axes)]
    weight = maker.parameter(shape, param_attr, default=_fan_in_normal(shape))
    bias = maker.parameter([num_filters], bias_attr, is_bias=True)
    stride, padding, dilation = rest
    made = getattr(F, kind)(input, weight, bias, stride, padding, dilation, groups, data_format)
    return maker.activated(made, act)


def conv2d(input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
           act: str | None = None, name: str | None = None, data_format: str = "NCHW") -> Tensor:
    """A convolution of images with its own filters.

    Args:
        input: the input.
        num_filters: the number of filters.
        filter_size: the size of the filters.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        use_cudnn: accepted for compatibility.
        act: the name of an activation, or None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3, 8, 8])
        ...     y = oar.static.nn.conv2d(x, num_filters=4, filter_size=3)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3, 8, 8], 'float32')}, fetch_list=[y])[0].shape
        (2, 4, 6, 6)
        >>> oar.disable_static()
    """
    return _conv("conv2d", input, num_filters, filter_size, groups, param_attr, bias_attr, act, name, data_format,
                 (stride, padding, dilation))


def conv3d(input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
           act: str | None = None, name: str | None = None, data_format: str = "NCDHW") -> Tensor:
    """A convolution of volumes with its own filters.

    Args:
        input: the input.
        num_filters: the number of filters.
        filter_size: the size of the filters.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        use_cudnn: accepted for compatibility.
        act: the name of an activation, or None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 1, 4, 4, 4])
        ...     y = oar.static.nn.conv3d(x, num_filters=2, filter_size=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 1, 4, 4, 4], 'float32')}, fetch_list=[y])[0].shape
        (2, 2, 3, 3, 3)
        >>> oar.disable_static()
    """
    return _conv("conv3d", input, num_filters, filter_size, groups, param_attr, bias_attr, act, name, data_format,
                 (stride, padding, dilation))


def _filter_for(output_size: Any, input: Tensor, axes: int, stride: Any, padding: Any, dilation: Any,
                data_format: str) -> list[int]:
    """The filter that gives an output of this size."""
    if isinstance(padding, str):
        raise ValueError("a filter size is needed where padding is a name.")
    space = input.shape[2:] if data_format[1] == "C" else input.shape[1:-1]
    rows = zip(sizes(output_size, axes), space, sizes(stride, axes), sizes(padding, axes), sizes(dilation, axes))
    return [(out - (x - 1) * s + 2 * p - 1) // d + 1 for out, x, s, p, d in rows]


def _conv_transpose(kind: str, input: Tensor, num_filters: int, output_size: Any, filter_size: Any, groups: int | None,
                    param_attr: Any, bias_attr: Any, act: str | None, name: str | None, data_format: str,
                    rest: tuple) -> Tensor:
    axes = int(kind[4])
    maker = LayerMaker(kind, name, input.dtype)
    padding, stride, dilation = rest
    if filter_size is None:
        if output_size is None:
            raise ValueError(f"[{kind}] output_size and filter_size cannot both be None.")
        filter_size = _filter_for(output_size, input, axes, stride, padding, dilation, data_format)
    channels, groups = channels_of(input, data_format), groups or 1
    weight = maker.parameter([channels, num_filters // groups, *sizes(filter_size, axes)], param_attr)
    bias = maker.parameter([num_filters], bias_attr, is_bias=True)
    made = getattr(F, kind)(input, weight, bias, stride=stride, padding=padding, groups=groups, dilation=dilation,
                            output_size=output_size, data_format=data_format)
    return maker.activated(made, act)


def conv2d_transpose(input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None,
                     padding: Any = 0, stride: Any = 1, dilation: Any = 1, groups: int | None = None,
                     param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCHW") -> Tensor:
    """A transposed convolution of images with its own filters.

    Args:
        input: the input.
        num_filters: the number of filters.
        output_size: the sizes of the result.
        filter_size: the size of the filters.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        stride: the distance of neighbouring windows: a number, or one per axis.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        use_cudnn: accepted for compatibility.
        act: the name of an activation, or None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3, 8, 8])
        ...     y = oar.static.nn.conv2d_transpose(x, num_filters=4, filter_size=2, stride=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3, 8, 8], 'float32')}, fetch_list=[y])[0].shape
        (2, 4, 16, 16)
        >>> oar.disable_static()
    """
    return _conv_transpose("conv2d_transpose", input, num_filters, output_size, filter_size, groups, param_attr,
                           bias_attr, act, name, data_format, (padding, stride, dilation))


def conv3d_transpose(input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None,
                     padding: Any = 0, stride: Any = 1, dilation: Any = 1, groups: int | None = None,
                     param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCDHW") -> Tensor:
    """A transposed convolution of volumes with its own filters.

    Args:
        input: the input.
        num_filters: the number of filters.
        output_size: the sizes of the result.
        filter_size: the size of the filters.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        stride: the distance of neighbouring windows: a number, or one per axis.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        use_cudnn: accepted for compatibility.
        act: the name of an activation, or None.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 1, 4, 4, 4])
        ...     y = oar.static.nn.conv3d_transpose(x, num_filters=2, filter_size=2, stride=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 1, 4, 4, 4], 'float32')}, fetch_list=[y])[0].shape
        (2, 2, 8, 8, 8)
        >>> oar.disable_static()
    """
    return _conv_transpose("conv3d_transpose", input, num_filters, output_size, filter_size, groups, param_attr,
                           bias_attr, act, name, data_format, (padding, stride, dilation))


def deform_conv2d(x: Tensor, offset: Tensor, mask: Tensor | None, num_filters: int, filter_size: Any, stride: Any = 1,
                  padding: Any = 0, dilation: Any = 1, groups: int = 1, deformable_groups: int = 1,
                  im2col_step: int = 1, weight_attr: Any = None, bias_attr: Any = None,
                  name: str | None = None) -> Tensor:
    """A convolution, with its own filters, whose taps are moved by ``offset``; see ``vision.ops``.

    Args:
        x: the input.
        offset: how far each tap is moved.
        mask: a factor for each tap, or None.
        num_filters: the number of filters.
        filter_size: the size of the filters.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        deformable_groups: the number of groups of channels that share offsets.
        im2col_step: accepted for compatibility.
        weight_attr: a ``ParamAttr`` or an initialiser for the weight; False leaves it out.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3, 8, 8])
        ...     offset = oar.static.data('offset', [None, 18, 6, 6])
        ...     mask = oar.static.data('mask', [None, 9, 6, 6])
        ...     y = oar.static.nn.deform_conv2d(x, offset, mask, num_filters=4, filter_size=3)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> shapes = {'x': [2, 3, 8, 8], 'offset': [2, 18, 6, 6], 'mask': [2, 9, 6, 6]}
        >>> feed = {name: np.ones(shape, 'float32') for name, shape in shapes.items()}
        >>> executor.run(main, feed=feed, fetch_list=[y])[0].shape
        (2, 4, 6, 6)
        >>> oar.disable_static()
    """
    static_only("deform_conv2d")
    maker = LayerMaker("deformable_conv", name, x.dtype)
    channels, groups, window = channels_of(x, "NCHW"), groups or 1, sizes(filter_size, 2)
    if channels % groups or num_filters % groups:
        raise ValueError(
            f"[deform_conv2d] {channels} channels and {num_filters} filters do not fall into {groups} groups."
        )
    fan_in_normal = Normal(0.0, math.sqrt(2.0 / (channels * math.prod(window))))
    weight = maker.parameter([num_filters, channels // groups, *window], weight_attr, default=fan_in_normal)
    bias = maker.parameter([num_filters], bias_attr, is_bias=True)
    return ops.deform_conv2d(x, offset, weight, bias, stride, padding, dilation, deformable_groups, groups, mask)
