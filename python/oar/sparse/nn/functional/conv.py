"""Convolution of sparse images."""

from __future__ import annotations

import math
from typing import Any

from oar import _C, _sparse
from oar._C import Tensor, ops
from oar.nn._axes import Axes, for_axes
from oar.nn.functional._window import FORMATS, resolve_padding

__all__ = ["conv2d", "conv3d", "subm_conv2d", "subm_conv2d_igemm", "subm_conv3d", "subm_conv3d_igemm"]


def per_axis(value: Any, axes: int, what: str) -> list[int]:
    """One integer per spatial axis."""
    values = [value] * axes if isinstance(value, int) else list(value)
    if len(values) != axes:
        raise ValueError(f"{what} must be an integer or {axes} integers, not {value!r}.")
    return [int(v) for v in values]


def symmetric_padding(padding: Any, axes: int, data_format: str, kernel: list[int], dilation: list[int]) -> list[int]:
    """The padding at both ends of each axis."""
    numbers, algorithm = resolve_padding(padding, axes, data_format)
    if algorithm == "VALID":
        return [0] * axes
    if algorithm == "SAME":
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        if any(r % 2 for r in reach):
            raise ValueError(f"padding 'SAME' needs the same number at both ends, and a kernel of {kernel} has none.")
        return [r // 2 for r in reach]
    if isinstance(numbers, (list, tuple)) and len(numbers) == 2 * axes:
        before, after = list(numbers[::2]), list(numbers[1::2])
        if before != after:
            raise ValueError(f"padding is {padding}; sparse images are padded by the same number at both ends.")
        return before
    return per_axis(numbers, axes, "padding")


def check_images(op: str, x: Tensor, axes: int, data_format: str) -> None:
    """An error unless x holds images with the channels last and dense."""
    last = FORMATS[axes][1]
    if data_format != last:
        raise ValueError(f"[{op}] data_format is {data_format!r}; sparse images have their channels last: {last!r}.")
    _sparse.require(x, op, ("sparse_coo",))
    if x.ndim != axes + 2 or x.sparse_dim() != axes + 1:
        raise ValueError(
            f"[{op}] x of shape {list(x.shape)} with {x.sparse_dim()} sparse axes does not hold images {last}: all axes "
            f"but the channels must be sparse, as to_sparse_coo({axes + 1}) returns them."
        )


def images(x: Tensor, indices: Tensor, values: Tensor, sizes: list[int], coalesced: bool) -> Tensor:
    """Images with these elements, whose index dtype is that of x."""
    shape = [x.shape[0], *sizes, values.shape[1]]
    return _C.sparse_coo(ops.cast(indices, x.indices().dtype), values, shape, coalesced, True)


def convolve(
    op: str, axes: int, subm: bool, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
    dilation: Any, groups: int, data_format: str,
) -> Tensor:
    """The convolution of sparse images [N, ..., C] with a weight [kernel..., in, out]."""
    check_images(op, x, axes, data_format)
    if groups != 1:
        raise ValueError(f"[{op}] groups is {groups}; sparse convolutions have one group.")
    if weight.ndim != axes + 2 or weight.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"[{op}] weight has shape {list(weight.shape)}; for x of shape {list(x.shape)} it must be [{axes} sizes of the "
            f"kernel, {x.shape[-1]} channels, channels of the result]."
        )
    kernel = list(weight.shape[:axes])
    stride, dilation = per_axis(stride, axes, "stride"), per_axis(dilation, axes, "dilation")
    padding = symmetric_padding(padding, axes, data_format, kernel, dilation)
    ordered = x.coalesce()
    x = x if subm and ordered.nnz() == x.nnz() else ordered  # subm keeps the order of the elements
    sizes = list(x.shape[1:-1])
    indices, inputs, outputs, taps = ops.conv_rules(x.indices(), sizes, kernel, stride, padding, dilation, subm)
    matrices = ops.reshape(weight, [math.prod(kernel), *weight.shape[-2:]])
    values = ops.rule_matmul(x.values(), matrices, inputs, outputs, taps, [indices.shape[1]])
    if bias is not None:
        values = ops.add(values, bias)
    if subm:
        return _C.sparse_with_values(x, values)
    window = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return images(x, indices, values, [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in window], True)


def _conv(axes: Axes):
    n, last = axes.count, axes.last

    def function(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, data_format: str = last, name: str | None = None,
    ) -> Tensor:
        """The convolution of sparse images over {axes}. The result holds every element that one of x reaches.

        Args:
            x: a COO tensor, format ``'{last}'``, whose channels are dense.
            weight: a tensor ``[{kernel}, in_channels, out_channels]``.
            bias: a vector that is added to the elements of the result, or None.
            stride: the steps of the kernel: {size}.
            padding: zeros at both ends of each axis: {size}, ``'SAME'`` or ``'VALID'``.
            dilation: the distance between the taps of the kernel: {size}.
            groups: 1.
            data_format: ``'{last}'``.

        Returns:
            a COO tensor.

        Examples:
            >>> import oar
            >>> x = oar.ones([1, {sizes:4}, 2]).to_sparse_coo({n} + 1)
            >>> y = oar.sparse.nn.functional.conv{n}d(x, oar.ones([{sizes:3}, 2, 1]))
            >>> y.shape
            [1, {sizes:2}, 1]
        """
        return convolve(f"conv{n}d", n, False, x, weight, bias, stride, padding, dilation, groups, data_format)

    return function


def _subm_conv(axes: Axes):
    n, last = axes.count, axes.last

    def function(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, data_format: str = last, key: str | None = None, name: str | None = None,
    ) -> Tensor:
        """The submanifold convolution of sparse images over {axes}: the result holds the elements of x and no others, as if x
        were padded to keep its size.

        Args:
            x: a COO tensor, format ``'{last}'``, whose channels are dense.
            weight: a tensor ``[{kernel}, in_channels, out_channels]``.
            bias: a vector that is added to the elements of the result, or None.
            stride: accepted for compatibility; it is 1.
            padding: accepted for compatibility; the kernel is centred.
            dilation: the distance between the taps of the kernel: {size}.
            groups: 1.
            data_format: ``'{last}'``.
            key: accepted for compatibility.

        Returns:
            a COO tensor.

        Examples:
            >>> import oar
            >>> x = oar.ones([1, {sizes:4}, 2]).to_sparse_coo({n} + 1)
            >>> y = oar.sparse.nn.functional.subm_conv{n}d(x, oar.ones([{sizes:3}, 2, 1]))
            >>> y.shape, y.nnz() == x.nnz()
            ([1, {sizes:4}, 1], True)
        """
        return convolve(f"subm_conv{n}d", n, True, x, weight, bias, stride, padding, dilation, groups, data_format)

    return function


def _subm_conv_igemm(axes: Axes):
    n, last = axes.count, axes.last

    def function(
        x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, data_format: str = last, key: str | None = None, name: str | None = None,
    ) -> Tensor:
        """``subm_conv{n}d`` under the name of another implementation of it in Paddle.

        Args:
            x: a COO tensor, format ``'{last}'``, whose channels are dense.
            weight: a tensor ``[{kernel}, in_channels, out_channels]``.
            bias: a vector that is added to the elements of the result, or None.
            stride: accepted for compatibility; it is 1.
            padding: accepted for compatibility; the kernel is centred.
            dilation: the distance between the taps of the kernel: {size}.
            groups: 1.
            data_format: ``'{last}'``.
            key: accepted for compatibility.

        Returns:
            a COO tensor.

        Examples:
            >>> import oar
            >>> x = oar.ones([1, {sizes:4}, 2]).to_sparse_coo({n} + 1)
            >>> oar.sparse.nn.functional.subm_conv{n}d_igemm(x, oar.ones([{sizes:3}, 2, 1])).shape
            [1, {sizes:4}, 1]
        """
        return convolve(f"subm_conv{n}d_igemm", n, True, x, weight, bias, stride, padding, dilation, groups, data_format)

    return function


conv2d, conv3d = for_axes("conv{n}d", _conv, (2, 3))
subm_conv2d, subm_conv3d = for_axes("subm_conv{n}d", _subm_conv, (2, 3))
subm_conv2d_igemm, subm_conv3d_igemm = for_axes("subm_conv{n}d_igemm", _subm_conv_igemm, (2, 3))
