"""Padding, resizing and taking images apart, in Paddle's looser argument forms."""

from __future__ import annotations

from fractions import Fraction

from oar import _C
from oar._C import Tensor, ops
from oar._spelling import spelled
from oar.nn.functional._antialias import resized

__all__ = ["fold", "interpolate", "pad", "unfold", "upsample", "zeropad2d"]

# Ops of the core (src/oar/ops/families), in the module where Paddle's programs look for them too.
affine_grid = ops.affine_grid
channel_shuffle = ops.channel_shuffle
grid_sample = ops.grid_sample
pixel_shuffle = ops.pixel_shuffle
pixel_unshuffle = ops.pixel_unshuffle

_FORMATS = {3: ("NCL", "NLC", "NCW", "NWC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}


def _numbers(given) -> list:
    if isinstance(given, Tensor):
        return given.tolist() if given.ndim else [given.item()]
    if {*map(type, given)} <= {int}:
        return list(given)
    return [item.item() if isinstance(item, Tensor) else item for item in given]


def _first_image_axis(what: str, x: Tensor, data_format: str | None) -> int:
    """The axis of height (depth, length); checks that the format is one of x's rank."""
    formats = _FORMATS.get(x.ndim)
    if formats is None:
        raise ValueError(f"[{what}] x must have 3, 4 or 5 axes, but its shape is {list(x.shape)}.")
    if data_format is None:
        return 2
    name = data_format.upper()
    if name not in formats:
        raise ValueError(f"[{what}] data_format is {data_format!r}; for a tensor of rank {x.ndim} it can be "
                         f"{' or '.join(formats)}.")
    return 1 if name.endswith("C") else 2


@spelled
def pad(x: Tensor, pad, mode: str = "constant", value: float = 0.0, data_format: str | None = None,
        pad_from_left_axis: bool = True, name: str | None = None) -> Tensor:
    """x with elements put around it (or, for negative numbers, cut off).

    ``pad`` lists (before, after) pairs. With two numbers per axis of an image (``2 * (rank - 2)`` of them) they go
    from its last axis forward: [left, right, top, bottom, front, back], placed by ``data_format``. With
    ``2 * rank`` numbers they go from the first axis on, or from the last if ``pad_from_left_axis`` is False. Other
    numbers of pairs (mode 'constant' only) go from the last axis forward.

    ``mode`` is 'constant' (elements of ``value``), 'reflect', 'replicate' or 'circular'.

    Args:
        x: the input.
        pad: how much to add, from the last axis to the first, before and after each.
        mode: 'constant', 'reflect', 'replicate' or 'circular'.
        value: the value of the new elements.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        pad_from_left_axis: whether the first pair belongs to the first axis where every axis has one.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.pad(oar.to_tensor([[1.0, 2.0]]), [0, 0, 1, 2])
        Tensor(shape=[1, 5], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0., 1., 2., 0., 0.]])
        >>> F.pad(oar.zeros([1, 3, 4, 4]), [1, 1, 2, 2]).shape
        [1, 3, 8, 6]
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ValueError(f"[pad] mode is {mode!r}; it can be constant, reflect, replicate or circular.")
    if isinstance(pad, (list, tuple)):
        numbers = pad
    elif isinstance(pad, Tensor):
        numbers = pad.tolist() if pad.ndim else [pad.item()]
    else:
        numbers = [pad]
    if len(numbers) % 2 and mode == "constant":
        numbers = [*numbers, 0]  # as in Paddle, what is missing of a pair is 0
    rank, count = x.ndim, len(numbers)
    of_image = count == 2 * (rank - 2) or mode != "constant" or isinstance(pad, Tensor)
    if count % 2 or count > 2 * rank or (of_image and count != 2 * (rank - 2)):
        wanted = f"{2 * (rank - 2)}" if of_image else f"an even number, at most {2 * rank},"
        raise ValueError(f"[pad] pad {list(numbers)} has {count} numbers; with x of shape {list(x.shape)} and mode "
                         f"{mode!r} it needs {wanted} of them.")
    first = _first_image_axis("pad", x, data_format) if of_image else rank - count // 2
    if not of_image and first == 0 and pad_from_left_axis:
        paddings = numbers
    else:  # pairs from the last axis forward
        paddings = [0] * (2 * first)
        for i in range(count - 2, -1, -2):
            paddings += numbers[i:i + 2]
        paddings += [0] * (2 * rank - len(paddings))
    if mode == "constant":
        return ops.pad_constant(x, paddings, value.item() if isinstance(value, Tensor) else value)
    return ops.pad_edges(x, paddings, mode)


def zeropad2d(x: Tensor, padding, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Images with zeros around them: ``padding`` is [left, right, top, bottom], or one number for all.

    Args:
        x: the input.
        padding: how many elements to add on each side.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.zeropad2d(oar.ones([1, 1, 2, 2]), [1, 0, 1, 0]).reshape([3, 3])
        Tensor(shape=[3, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0., 0., 0.],
                [0., 1., 1.],
                [0., 1., 1.]])
    """
    return pad(x, [padding] * 4 if isinstance(padding, int) else padding, "constant", 0, data_format)


_MODES = {"nearest": (3, 4, 5), "linear": (3,), "bilinear": (4,), "trilinear": (5,), "bicubic": (4,),
          "area": (3, 4, 5)}
_KERNELS = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "area": "area"}


def _check_interpolate(x: Tensor, size, scale_factor, mode: str, align_corners: bool, align_mode: int) -> None:
    if mode not in _MODES:
        raise ValueError(f"[interpolate] mode is {mode!r}; it can be {', '.join(_MODES)}.")
    if x.ndim not in _MODES[mode]:
        raise ValueError(f"[interpolate] mode {mode!r} takes tensors of rank "
                         f"{' or '.join(map(str, _MODES[mode]))}, not of shape {list(x.shape)}.")
    if (size is None) == (scale_factor is None):
        raise ValueError("[interpolate] one of size and scale_factor must be given, and only one.")
    if not isinstance(align_corners, bool):
        raise TypeError(f"[interpolate] align_corners must be a bool, not {align_corners!r}.")
    if align_corners and mode == "nearest":
        raise ValueError("[interpolate] align_corners has a meaning for linear, bilinear, trilinear and bicubic only.")
    if align_mode not in (0, 1):
        raise ValueError(f"[interpolate] align_mode must be 0 or 1, not {align_mode!r}.")


def _scaled(size, scale: float):
    """floor(size * scale) in single precision, as the result's size is defined."""
    if not isinstance(size, int):  # a size that is not known yet
        part = Fraction(scale).limit_denominator(1 << 20)
        return size * part.numerator // part.denominator
    import numpy
    return int(numpy.float32(size) * numpy.float32(scale))


@spelled
def interpolate(x: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool = False,
                align_mode: int = 0, data_format: str | None = None, name: str | None = None, *,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Images (or sequences, or volumes) at another size.

    ``size`` is one number per axis of the image, ``scale_factor`` a number or one per axis. ``mode`` is 'nearest',
    'linear', 'bilinear', 'trilinear', 'bicubic' or 'area'. With ``align_corners`` the outermost pixels keep their
    positions; otherwise ``align_mode`` 0 compares the middles of pixels, 1 their first corners.

    Args:
        x: the input.
        size: the sizes of the result, or None.
        scale_factor: how much larger the result is, if size is None.
        mode: 'nearest', 'bilinear', 'linear', 'trilinear', 'bicubic' or 'area'.
        align_corners: whether the corner pixels are aligned at their centres.
        align_mode: 1 measures pixels by their corners, 0 by their centres.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.
        recompute_scale_factor: True takes the scale from the sizes, which are rounded, instead of ``scale_factor``.
        antialias: with 'bilinear' and 'bicubic', average over all the pixels that a new one covers.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x = oar.to_tensor([[[[0.0, 1.0]]]])
        >>> F.interpolate(x, size=[1, 4], mode='bilinear').flatten()
        Tensor(shape=[4], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.25000000, 0.75000000, 1.        ])
    """
    mode = mode.lower()
    _check_interpolate(x, size, scale_factor, mode, align_corners, align_mode)
    axis, count = _first_image_axis("interpolate", x, data_format), x.ndim - 2
    scale = None
    if size is None:
        plain = not isinstance(scale_factor, (list, tuple)) and getattr(scale_factor, "ndim", 0) == 0
        scale = [float(scale_factor)] * count if plain else [float(s) for s in _numbers(scale_factor)]
        if len(scale) != count or min(scale) <= 0:
            raise ValueError(f"[interpolate] scale_factor {scale} must be {count} positive numbers for a tensor of "
                             f"shape {list(x.shape)}.")
        size = [_scaled(x.shape[axis + i], s) for i, s in enumerate(scale)]
    else:
        size = _numbers(size if isinstance(size, (list, tuple, Tensor)) else [size] * count)
        if len(size) != count:
            raise ValueError(f"[interpolate] size {size} must be {count} numbers for a tensor of shape "
                             f"{list(x.shape)}.")
    if recompute_scale_factor:
        if scale is None:
            raise ValueError("[interpolate] recompute_scale_factor needs scale_factor, but size was passed.")
        scale = None
    if antialias:
        if mode not in ("bilinear", "bicubic"):
            raise ValueError(f"[interpolate] antialias has a meaning for bilinear and bicubic only, not for {mode!r}.")
        return resized(x, axis, size, scale, mode, align_corners)
    if mode == "nearest":
        return ops.resample_nearest(x, axis, size, scale)
    if mode == "bilinear" and x.dtype == _C.uint8:  # images; computed as floats, fractions are dropped
        drawn = ops.resample(ops.cast(x, "float32"), axis, size, scale, _KERNELS[mode], align_corners, align_mode)
        return ops.cast(drawn, "uint8")
    return ops.resample(x, axis, size, scale, _KERNELS[mode], align_corners, align_mode)


def upsample(x: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool = False,
             align_mode: int = 0, data_format: str | None = None, name: str | None = None) -> Tensor:
    """``interpolate`` under its other name.

    Args:
        x: the input.
        size: the sizes of the result, or None.
        scale_factor: how much larger the result is, if size is None.
        mode: 'nearest', 'bilinear', 'linear', 'trilinear', 'bicubic' or 'area'.
        align_corners: whether the corner pixels are aligned at their centres.
        align_mode: 1 measures pixels by their corners, 0 by their centres.
        data_format: the order of the axes: channels first, as in ``'NCHW'``, or last, as in ``'NHWC'``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.upsample(oar.zeros([1, 3, 4, 4]), scale_factor=2).shape
        [1, 3, 8, 8]
    """
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format)


def _pair(given, argument: str) -> list[int]:
    pair = [given] * 2 if isinstance(given, int) else _numbers(given)
    if len(pair) != 2:
        raise ValueError(f"{argument} must be a number or two, not {given}.")
    return pair


def _windows(kernel_sizes, strides, paddings, dilations) -> list:
    around = [paddings] * 4 if isinstance(paddings, int) else _numbers(paddings)
    if len(around) not in (2, 4):
        raise ValueError(f"paddings must be a number, [height, width] or [top, left, bottom, right], not {paddings}.")
    return [_pair(kernel_sizes, "kernel_sizes"), _pair(strides, "strides"),
            around * 2 if len(around) == 2 else around, _pair(dilations, "dilations")]


@spelled
def unfold(x: Tensor, kernel_sizes, strides=1, paddings=0, dilations=1, name: str | None = None) -> Tensor:
    """Windows of images [n, c, h, w] as columns: [n, c * kernel height * kernel width, windows].

    Args:
        x: the input.
        kernel_sizes: the size of the windows.
        strides: the distance of neighbouring windows.
        paddings: how many zeros to add on each side.
        dilations: the distance between the taps of a window.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.unfold(oar.zeros([1, 3, 4, 4]), 2).shape
        [1, 12, 9]
    """
    return ops.im2col(x, *_windows(kernel_sizes, strides, paddings, dilations))


@spelled
def fold(x: Tensor, output_sizes, kernel_sizes, strides=1, paddings=0, dilations=1, name: str | None = None) -> Tensor:
    """The reverse of ``unfold``: columns added up to images of ``output_sizes``.

    Args:
        x: the input.
        output_sizes: the sizes of the images.
        kernel_sizes: the size of the windows.
        strides: the distance of neighbouring windows.
        paddings: how many zeros to add on each side.
        dilations: the distance between the taps of a window.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.fold(oar.ones([1, 4, 4]), [4, 4], 2, strides=2).shape
        [1, 1, 4, 4]
    """
    return ops.col2im(x, _pair(output_sizes, "output_sizes"), *_windows(kernel_sizes, strides, paddings, dilations))
