"""Convolutions, plain and transposed, over one to three spatial axes.

``stride``, ``dilation`` and ``output_padding`` are one number or one for each spatial axis. ``padding`` is a number,
one for each axis, two for each ([before, after, ...]), pairs per axis, 'SAME' or 'VALID'.
"""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar._spelling import spelled
from oar.nn._axes import Axes, for_axes
from oar.nn.functional._window import resolve_padding

__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]


def _output_size(output_size: Any, output_padding: Any, dims: int) -> Any:
    """As a list, or None. It and ``output_padding`` exclude each other."""
    if output_size is None:
        return None
    if output_padding not in (0, [0] * dims, (0,) * dims):
        raise ValueError(
            f"output_padding {output_padding} and output_size {output_size} exclude each other; pass one of them."
        )
    return [output_size] * dims if isinstance(output_size, int) else output_size


def _for_conv(axes: Axes) -> Any:
    op, dims = getattr(ops, f"conv{axes.count}d"), axes.count

    def conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1,
             data_format: str = axes.first, name: str | None = None) -> Tensor:
        """Slides filters [out, in / groups, {kernel}] over {inputs}.

        Args:
            x: the input.
            weight: the filters.
            bias: what is added to each channel, or None.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            dilation: the distance between the taps of a filter.
            groups: the number of groups of channels.
            data_format: {formats}.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.conv{n}d(oar.ones([1, 1, {sizes:4}]), oar.ones([2, 1, {sizes:2}])).shape
            [1, 2, {sizes:3}]
        """
        if padding.__class__ is int:
            return op(x, weight, bias, stride, padding, dilation, groups, data_format)
        numbers, algorithm = resolve_padding(padding, dims, data_format)
        return op(x, weight, bias, stride, numbers, dilation, groups, data_format, algorithm)

    return conv


conv1d, conv2d, conv3d = for_axes("conv{n}d", _for_conv)


def _conv_nd(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, padding_algorithm: str | None = None,
             dilation=1, groups: int = 1, data_format: str = "NCHW", channel_dim: int = 1, op_type: str = "conv2d",
             use_cudnn: bool = True, name: str | None = None) -> Tensor:
    """The convolution that Paddle calls ``op_type``, with a padding that is resolved already.

    Args:
        x: the input.
        weight: the filters.
        bias: what is added to each channel, or None.
        stride: the distance of neighbouring windows.
        padding: the padding, in numbers.
        padding_algorithm: ``'SAME'`` or ``'VALID'`` instead of numbers; ``'EXPLICIT'`` or None otherwise.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        data_format: where the channels are.
        channel_dim: accepted for compatibility: ``data_format`` says it.
        op_type: ``'conv2d'``, ``'depthwise_conv2d'`` or ``'conv3d'``.
        use_cudnn: accepted for compatibility.

    Returns:
        a tensor.
    """
    convolutions = {"conv2d": conv2d, "depthwise_conv2d": conv2d, "conv3d": conv3d}
    if op_type not in convolutions:
        raise ValueError(f"[_conv_nd] op_type must be one of {', '.join(convolutions)}, not {op_type!r}.")
    by_name = padding_algorithm in ("SAME", "VALID")
    return convolutions[op_type](x, weight, bias, stride, padding_algorithm if by_name else padding, dilation, groups, data_format)


def _for_conv_transpose(axes: Axes) -> Any:
    op, dims = getattr(ops, f"conv{axes.count}d_transpose"), axes.count

    def conv_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0,
                       groups: int = 1, dilation=1, output_size=None, data_format: str = axes.first,
                       name: str | None = None) -> Tensor:
        """The transposed convolution with filters [in, out / groups, {kernel}].

        Several sizes of the result have x's size as theirs; ``output_padding`` adds to the smallest one, ``output_size``
        names one.

        Args:
            x: the input.
            weight: the filters.
            bias: what is added to each channel, or None.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            output_padding: how many elements to add at one end of the result.
            groups: the number of groups of channels.
            dilation: the distance between the taps of a filter.
            output_size: the sizes of the result.
            data_format: {formats}.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.conv{n}d_transpose(oar.ones([1, 1, {sizes:2}]), oar.ones([1, 1, {sizes:2}]), stride=2).shape
            [1, 1, {sizes:4}]
        """
        size = _output_size(output_size, output_padding, dims)
        numbers, algorithm = resolve_padding(padding, dims, data_format)
        return op(x, weight, bias, stride, numbers, output_padding, groups, dilation, size, data_format, algorithm)

    return conv_transpose


conv1d_transpose, conv3d_transpose = for_axes("conv{n}d_transpose", _for_conv_transpose, (1, 3))


# Paddle has dilation before groups here, and groups before dilation for one axis and for three.
@spelled
def conv2d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0,
                     dilation=1, groups: int = 1, output_size=None, data_format: str = "NCHW",
                     name: str | None = None) -> Tensor:
    """The transposed convolution with filters [in, out / groups, height, width].

    Several sizes of the result have x's size as theirs; ``output_padding`` adds to the smallest one, ``output_size``
    names one.

    Args:
        x: the input.
        weight: the filters.
        bias: what is added to each channel, or None.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        output_padding: how many elements to add at one end of the result.
        dilation: the distance between the taps of a filter.
        groups: the number of groups of channels.
        output_size: the sizes of the result.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.conv2d_transpose(oar.ones([1, 3, 4, 4]), oar.ones([3, 2, 2, 2]), stride=2).shape
        [1, 2, 8, 8]
    """
    size = _output_size(output_size, output_padding, 2)
    numbers, algorithm = resolve_padding(padding, 2, data_format)
    return ops.conv2d_transpose(x, weight, bias, stride, numbers, output_padding, dilation, groups, size, data_format,
                                algorithm)
