"""Pooling over one to three spatial axes.

``kernel_size`` and ``stride`` are one number or one for each spatial axis; the stride is the kernel's size where it is
None. ``padding`` is a number, one for each axis, two for each ([before, after, ...]), pairs per axis, 'SAME' or
'VALID'. A mask names the place of each maximum in its image: the number of elements before it.
"""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar._spelling import spelled
from oar.nn._axes import Axes, for_axes
from oar.nn.functional._window import keep_none, resolve_padding

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


def _max_pool(pool: Any, dims: int, x: Tensor, kernel_size, stride, padding, return_mask: bool, ceil_mode: bool,
              data_format: str):
    numbers, algorithm = resolve_padding(padding, dims, data_format)
    if return_mask:
        _check_rank(x, dims)
        pool = ops.max_pool_with_mask
    return pool(x, kernel_size, stride, numbers, ceil_mode, data_format, algorithm)


def _check_rank(x: Tensor, dims: int) -> None:
    if len(x.shape) != dims + 2:
        raise ValueError(f"x must have {dims + 2} axes, but its shape is {list(x.shape)}.")


def _lp_pool(dims: int, x: Tensor, norm_type: float, kernel_size, stride, padding, ceil_mode: bool, data_format: str):
    _check_rank(x, dims)
    numbers, algorithm = resolve_padding(padding, dims, data_format)
    return ops.lp_pool(x, float(norm_type), kernel_size, stride, numbers, ceil_mode, data_format, algorithm)


def _max_unpool(dims: int, x: Tensor, indices: Tensor, kernel_size, stride, padding, data_format: str, output_size):
    _check_rank(x, dims)
    return ops.max_unpool(x, indices, kernel_size, stride, padding, output_size, data_format)


def _fractional_max_pool(dims: int, x: Tensor, output_size, kernel_size, random_u: float | None, return_mask: bool):
    _check_rank(x, dims)
    if random_u is not None and not 0 < random_u < 1:
        raise ValueError(f"random_u must be between 0 and 1, not {random_u}.")
    sizes = output_size if isinstance(output_size, (list, tuple)) else [output_size] * dims
    sizes = [kept if size is None else size for size, kept in zip(sizes, x.shape[2:])]
    if isinstance(kernel_size, int):
        kernel_size = [kernel_size] * dims
    u = oar.rand([], dtype="float64") if random_u is None else oar.full([], random_u, dtype="float64")
    out, mask = ops.fractional_max_pool(x, u, sizes, kernel_size)
    return (out, mask) if return_mask else out


@spelled
def max_pool1d(x: Tensor, kernel_size, stride=None, padding=0, return_mask: bool = False, ceil_mode: bool = False,
               name: str | None = None):
    """The largest element of each window; with ``return_mask`` also its place.

    Args:
        x: the input.
        kernel_size: the size of the windows: a number, or one per axis.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        return_mask: whether to return the places of the elements as well.
        ceil_mode: whether windows that reach over the edge count.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.max_pool1d(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[3., 4.]]])
    """
    return _max_pool(ops.max_pool1d, 1, x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")


def _for_max_pool(axes: Axes) -> Any:
    op, dims = getattr(ops, f"max_pool{axes.count}d"), axes.count

    def max_pool(x: Tensor, kernel_size, stride=None, padding=0, return_mask: bool = False, ceil_mode: bool = False,
                 data_format: str = axes.first, name: str | None = None):
        """The largest element of each window; with ``return_mask`` also its place.

        Args:
            x: the input.
            kernel_size: the size of the windows: a number, or one per axis.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            return_mask: whether to return the places of the elements as well.
            ceil_mode: whether windows that reach over the edge count.
            data_format: {formats}.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.max_pool{n}d(oar.ones([1, 1, {sizes:4}]), 2).shape
            [1, 1, {sizes:2}]
        """
        return _max_pool(op, dims, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)

    return max_pool


max_pool2d, max_pool3d = for_axes("max_pool{n}d", _for_max_pool, (2, 3))


@spelled
def avg_pool1d(x: Tensor, kernel_size, stride=None, padding=0, exclusive: bool = True, ceil_mode: bool = False,
               name: str | None = None) -> Tensor:
    """The mean of each window; ``exclusive`` leaves the padding out of the count.

    Args:
        x: the input.
        kernel_size: the size of the windows: a number, or one per axis.
        stride: the distance of neighbouring windows: a number, or one per axis.
        padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
        exclusive: whether the padding is left out of the mean.
        ceil_mode: whether windows that reach over the edge count.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.avg_pool1d(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[2., 3.]]])
    """
    numbers, algorithm = resolve_padding(padding, 1, "NCL")
    return ops.avg_pool1d(x, kernel_size, stride, numbers, ceil_mode, exclusive, None, "NCL", algorithm)


def _for_avg_pool(axes: Axes) -> Any:
    op, dims = getattr(ops, f"avg_pool{axes.count}d"), axes.count

    def avg_pool(x: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, exclusive: bool = True,
                 divisor_override=None, data_format: str = axes.first, name: str | None = None) -> Tensor:
        """The mean of each window; ``exclusive`` leaves the padding out of the count.

        Args:
            x: the input.
            kernel_size: the size of the windows: a number, or one per axis.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            ceil_mode: whether windows that reach over the edge count.
            exclusive: whether the padding is left out of the mean.
            divisor_override: what sums are divided by, or None.
            data_format: {formats}.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.avg_pool{n}d(oar.ones([1, 1, {sizes:4}]), 2).shape
            [1, 1, {sizes:2}]
        """
        numbers, algorithm = resolve_padding(padding, dims, data_format)
        return op(x, kernel_size, stride, numbers, ceil_mode, exclusive, divisor_override, data_format, algorithm)

    return avg_pool


avg_pool2d, avg_pool3d = for_axes("avg_pool{n}d", _for_avg_pool, (2, 3))


def _for_lp_pool(axes: Axes) -> Any:
    dims = axes.count

    def lp_pool(x: Tensor, norm_type: float, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
                data_format: str = axes.first, name: str | None = None) -> Tensor:
        """The root of the sum of the powers of each window: (x ** p summed) ** (1 / p) with p = ``norm_type``.

        Args:
            x: the input.
            norm_type: the p of the norm.
            kernel_size: the size of the windows: a number, or one per axis.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            ceil_mode: whether windows that reach over the edge count.
            data_format: {formats}.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.lp_pool{n}d(oar.ones([1, 1, {sizes:4}]), 2.0, 2).shape
            [1, 1, {sizes:2}]
        """
        return _lp_pool(dims, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)

    return lp_pool


lp_pool1d, lp_pool2d = for_axes("lp_pool{n}d", _for_lp_pool, (1, 2))


@spelled
def adaptive_avg_pool1d(x: Tensor, output_size, name: str | None = None) -> Tensor:
    """Means over windows chosen so that the result has ``output_size``; None keeps a size.

    Args:
        x: the input.
        output_size: the sizes of the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.adaptive_avg_pool1d(oar.to_tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[[2., 3.]]])
    """
    return ops.adaptive_avg_pool1d(x, keep_none(output_size))


def _for_adaptive_avg_pool(axes: Axes) -> Any:
    op = getattr(ops, f"adaptive_avg_pool{axes.count}d")

    def adaptive_avg_pool(x: Tensor, output_size, data_format: str = axes.first, name: str | None = None) -> Tensor:
        """Means over windows chosen so that the result has ``output_size``; None keeps a size.

        Args:
            x: the input.
            output_size: the sizes of the result.
            data_format: {formats}.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.adaptive_avg_pool{n}d(oar.ones([1, 3, {sizes:4}]), 2).shape
            [1, 3, {sizes:2}]
        """
        return op(x, keep_none(output_size), data_format)

    return adaptive_avg_pool


adaptive_avg_pool2d, adaptive_avg_pool3d = for_axes("adaptive_avg_pool{n}d", _for_adaptive_avg_pool, (2, 3))


def _for_adaptive_max_pool(axes: Axes) -> Any:
    op, dims = getattr(ops, f"adaptive_max_pool{axes.count}d"), axes.count

    def adaptive_max_pool(x: Tensor, output_size, return_mask: bool = False, name: str | None = None):
        """Largest elements over windows chosen so that the result has ``output_size``; None keeps a size.

        Args:
            x: the input.
            output_size: the sizes of the result.
            return_mask: whether to return the places of the elements as well.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.adaptive_max_pool{n}d(oar.ones([1, 3, {sizes:4}]), 2).shape
            [1, 3, {sizes:2}]
        """
        if return_mask:
            _check_rank(x, dims)
            return ops.adaptive_max_pool_with_mask(x, keep_none(output_size))
        return op(x, keep_none(output_size))

    return adaptive_max_pool


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = for_axes("adaptive_max_pool{n}d", _for_adaptive_max_pool)


def _for_fractional_max_pool(axes: Axes) -> Any:
    dims = axes.count

    def fractional_max_pool(x: Tensor, output_size, kernel_size=None, random_u: float | None = None,
                            return_mask: bool = False, name: str | None = None):
        """Largest elements over ``output_size`` windows at positions derived from ``random_u``, which is drawn if None.

        Args:
            x: the input.
            output_size: the sizes of the result.
            kernel_size: the size of the windows: a number, or one per axis.
            random_u: determines the positions of the windows, in (0, 1); random if None.
            return_mask: whether to return the places of the elements as well.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> F.fractional_max_pool{n}d(oar.ones([1, 1, {sizes:7}]), 3, random_u=0.5).shape
            [1, 1, {sizes:3}]
        """
        return _fractional_max_pool(dims, x, output_size, kernel_size, random_u, return_mask)

    return fractional_max_pool


fractional_max_pool2d, fractional_max_pool3d = for_axes("fractional_max_pool{n}d", _for_fractional_max_pool, (2, 3))


def _for_max_unpool(axes: Axes) -> Any:
    dims = axes.count

    def max_unpool(x: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, data_format: str = axes.first,
                   output_size=None, name: str | None = None) -> Tensor:
        """Puts each element of x at its position in the mask of a max pooling; the rest is zero.

        Args:
            x: the input.
            indices: the mask of the pooling.
            kernel_size: the size of the windows: a number, or one per axis.
            stride: the distance of neighbouring windows: a number, or one per axis.
            padding: the padding: a number, a list, pairs per axis, ``'SAME'`` or ``'VALID'``.
            data_format: {formats}.
            output_size: the sizes of the result.

        Returns:
            a tensor.

        Examples:
            >>> import oar
            >>> import oar.nn.functional as F
            >>> pooled, places = F.max_pool{n}d(oar.rand([1, 1, {sizes:4}]), 2, return_mask=True)
            >>> F.max_unpool{n}d(pooled, places, 2).shape
            [1, 1, {sizes:4}]
        """
        return _max_unpool(dims, x, indices, kernel_size, stride, padding, data_format, output_size)

    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = for_axes("max_unpool{n}d", _for_max_unpool)
