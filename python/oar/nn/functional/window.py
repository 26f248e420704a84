"""Convolution and pooling in Paddle's looser argument forms: padding by name or as pairs, optional masks."""

from __future__ import annotations

from oar._C import Tensor, ops


def _padding(padding, data_format: str) -> tuple[list[int] | int, str]:
    """(numbers, algorithm) of a padding given as a name, a number, a flat list, or pairs per axis."""
    if isinstance(padding, str):
        name = padding.upper()
        if name not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or numbers, not {padding!r}.")
        return 0, name
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [list(pair) for pair in padding]
        if len(pairs) == 4:  # batch and channels are listed too; they cannot be padded
            spatial = pairs[1:3] if data_format == "NHWC" else pairs[2:]
            outer = [pair for pair in pairs if pair not in spatial]
            if any(any(pair) for pair in outer):
                raise ValueError(f"batch and channels cannot be padded, but padding is {padding}.")
            pairs = spatial
        return [number for pair in pairs for number in pair], "EXPLICIT"
    return padding, "EXPLICIT"


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1,
           data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Slides filters [out, in / groups, height, width] over images.

    ``padding`` is a number, [height, width], [top, bottom, left, right], pairs per axis, 'SAME' or 'VALID'.
    """
    if padding.__class__ is int:
        return ops.conv2d(x, weight, bias, stride, padding, dilation, groups, data_format)
    numbers, algorithm = _padding(padding, data_format)
    return ops.conv2d(x, weight, bias, stride, numbers, dilation, groups, data_format, algorithm)


def max_pool2d(x: Tensor, kernel_size, stride=None, padding=0, return_mask: bool = False, ceil_mode: bool = False,
               data_format: str = "NCHW", name: str | None = None):
    """The largest element of each window; with ``return_mask`` also its place in the image."""
    numbers, algorithm = _padding(padding, data_format)
    pool = ops.max_pool2d_with_mask if return_mask else ops.max_pool2d
    return pool(x, kernel_size, stride, numbers, ceil_mode, data_format, algorithm)


def avg_pool2d(x: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, exclusive: bool = True,
               divisor_override=None, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """The mean of each window; ``exclusive`` leaves the padding out of the count."""
    numbers, algorithm = _padding(padding, data_format)
    return ops.avg_pool2d(x, kernel_size, stride, numbers, ceil_mode, exclusive, divisor_override, data_format,
                          algorithm)


def adaptive_avg_pool2d(x: Tensor, output_size, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Means over windows chosen so that the result has ``output_size``; None keeps a size."""
    return ops.adaptive_avg_pool2d(x, _output_size(x, output_size, data_format), data_format)


def adaptive_max_pool2d(x: Tensor, output_size, return_mask: bool = False, name: str | None = None):
    """Largest elements over windows chosen so that the result has ``output_size``."""
    size = _output_size(x, output_size, "NCHW")
    if return_mask:
        pair = size if len(size) == 2 else size * 2
        return ops.adaptive_max_pool2d_with_index(x, pair)
    return ops.adaptive_max_pool2d(x, size)


def _output_size(x: Tensor, output_size, data_format: str) -> list[int]:
    if not isinstance(output_size, (list, tuple)):
        return [output_size, output_size]
    height = 1 if data_format == "NHWC" else 2
    return [x.shape[height + i] if size is None else size for i, size in enumerate(output_size)]
