"""Functions on images. Each takes an image of Pillow, an array [height, width, channels] or a tensor [channels, height, width],
and returns the same kind. Values are those of Pillow, of OpenCV and of ops."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from oar._C import ArgumentTypeError, ArgumentValueError, Tensor
from oar.vision.transforms import _checks
from oar.vision.transforms._checks import is_numpy_image as _is_numpy_image
from oar.vision.transforms._checks import is_pil_image as _is_pil_image
from oar.vision.transforms._checks import is_tensor_image as _is_tensor_image

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill, Padding, Size

__all__: list[str] = []


def _module_for(function: str, img: Any) -> ModuleType:
    """The module with the functions for this kind of image."""
    if _is_pil_image(img):
        from oar.vision.transforms import functional_pil

        return functional_pil
    if _is_tensor_image(img):
        from oar.vision.transforms import functional_tensor

        return functional_tensor
    if _is_numpy_image(img):
        from oar.vision.transforms import functional_cv2

        return functional_cv2
    raise _checks.refuse(function, img)


def to_tensor(pic: Any, data_format: str = "CHW") -> Tensor:
    """An image as a tensor. Bytes become numbers between 0 and 1, of float32; other numbers stay as they are.

    Args:
        pic: the image.
        data_format: 'CHW' for [channels, height, width], 'HWC' for [height, width, channels].

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import to_tensor
        >>> to_tensor(np.full((4, 5, 3), 255, 'uint8')).shape
        [3, 4, 5]
    """
    module = _module_for("to_tensor", pic)
    if not _is_tensor_image(pic):
        return module.to_tensor(pic, data_format)
    return pic if str(data_format).lower() == "chw" else pic.transpose([1, 2, 0])


def resize(img: Any, size: Size, interpolation: str = "bilinear") -> Any:
    """Changes the size of an image.

    Args:
        img: the image.
        size: the new (height, width); or a number, which the shorter side becomes, with the same shape.
        interpolation: 'nearest', 'bilinear', 'bicubic'; 'lanczos' (Pillow and arrays), 'box' and 'hamming' (Pillow), 'area'
            (arrays and tensors).

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import resize
        >>> image = np.zeros((256, 300, 3), 'uint8')
        >>> resize(image, 224).shape, resize(image, (200, 150)).shape
        ((224, 262, 3), (200, 150, 3))
    """
    return _module_for("resize", img).resize(img, size, interpolation)


def pad(img: Any, padding: Padding, fill: Fill = 0, padding_mode: str = "constant") -> Any:
    """Adds a border to an image.

    Args:
        img: the image.
        padding: pixels on all sides; or (left and right, top and bottom), or (left, top, right, bottom).
        fill: the value of a constant border, or one for each channel. Of an array, one number is that of the first channel.
        padding_mode: 'constant'; 'edge' repeats the last pixel, 'reflect' mirrors the image without it, 'symmetric' with
            it (not for tensors).

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import pad
        >>> image = np.zeros((256, 300, 3), 'uint8')
        >>> pad(image, 1).shape, pad(image, (2, 1)).shape
        ((258, 302, 3), (258, 304, 3))
    """
    return _module_for("pad", img).pad(img, padding, fill, padding_mode)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of an image.

    Args:
        img: the image.
        top: the first row.
        left: the first column.
        height: the number of rows.
        width: the number of columns.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import crop
        >>> crop(np.zeros((256, 300, 3), 'uint8'), 56, 150, 200, 100).shape
        (200, 100, 3)
    """
    return _module_for("crop", img).crop(img, top, left, height, width)


def center_crop(img: Any, output_size: Size) -> Any:
    """The part in the middle of an image.

    Args:
        img: the image.
        output_size: (height, width), or a number for both.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import center_crop
        >>> center_crop(np.zeros((256, 300, 3), 'uint8'), (150, 100)).shape
        (150, 100, 3)
    """
    return _module_for("center_crop", img).center_crop(img, output_size)


def hflip(img: Any) -> Any:
    """Swaps left and right.

    Args:
        img: the image.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import hflip
        >>> hflip(np.array([[1, 2, 3]], 'uint8'))
        array([[3, 2, 1]], dtype=uint8)
    """
    return _module_for("hflip", img).hflip(img)


def vflip(img: Any) -> Any:
    """Swaps top and bottom.

    Args:
        img: the image.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import vflip
        >>> vflip(np.array([[1], [2]], 'uint8')).tolist()
        [[2], [1]]
    """
    return _module_for("vflip", img).vflip(img)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Makes an image brighter or darker.

    Args:
        img: the image.
        brightness_factor: 0 is black, 1 the image itself, 2 twice as bright.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import adjust_brightness
        >>> adjust_brightness(np.array([[10, 200]], 'uint8'), 2).tolist()
        [[20, 255]]
    """
    return _module_for("adjust_brightness", img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Makes differences larger or smaller.

    Args:
        img: the image.
        contrast_factor: 0 is one gray, 1 the image itself, 2 twice the contrast.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import adjust_contrast
        >>> adjust_contrast(np.array([[64, 84]], 'uint8'), 2).tolist()
        [[54, 94]]
    """
    return _module_for("adjust_contrast", img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Makes colours stronger or weaker.

    Args:
        img: the image.
        saturation_factor: 0 is gray, 1 the image itself, 2 twice the saturation. For an array, the factor is drawn with
            ``numpy.random`` between 1 - saturation_factor and 1 + saturation_factor.

    Returns:
        an image of the same kind.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms.functional import adjust_saturation
        >>> adjust_saturation(oar.ones([3, 1, 1]), 0.5).flatten().tolist()
        [1.0, 1.0, 1.0]
    """
    return _module_for("adjust_saturation", img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turns the colours of an image around the circle of colours.

    Args:
        img: the image. An array is in the order blue, green, red.
        hue_factor: between -0.5 and 0.5, in parts of the circle; 0 is the image itself.

    Returns:
        an image of the same kind.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import adjust_hue
        >>> red = oar.to_tensor([1.0, 0.0, 0.0]).reshape([3, 1, 1])
        >>> adjust_hue(red, 0.5).flatten().tolist()
        [0.0, 1.0, 1.0]
    """
    return _module_for("adjust_hue", img).adjust_hue(img, hue_factor)


def _get_affine_matrix(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float],
) -> list[float]:  # fmt: skip
    """The first two rows of the matrix from the result of an affine transform to its source: the inverse of shift, center,
    rotation, shear, scale and center."""
    turn, shear_x, shear_y = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -a * math.tan(shear_x) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -c * math.tan(shear_x) + math.cos(turn)
    rows = [[d / scale, -b / scale], [-c / scale, a / scale]]
    x, y = -center[0] - translate[0], -center[1] - translate[1]
    return [entry for (p, q), middle in zip(rows, center) for entry in (p, q, p * x + q * y + middle)]


def _checked_affine(
    angle: Any, translate: Any, scale: Any, shear: Any, interpolation: Any, center: Any,
) -> list[float]:  # fmt: skip
    """Checks the arguments of ``affine`` and returns the two angles of the shear."""
    if not isinstance(angle, (int, float)):
        raise ArgumentTypeError(f"[affine] angle is {angle!r}; it must be a number, in degrees.")
    if not isinstance(translate, (list, tuple)):
        raise ArgumentTypeError(f"[affine] translate is {translate!r}; it must be a pair of numbers of pixels.")
    if len(translate) != 2:
        raise ArgumentValueError(f"[affine] translate has {len(translate)} elements; it must have two.")
    if scale <= 0.0:
        raise ArgumentValueError(f"[affine] scale is {scale}; it must be positive.")
    if not isinstance(shear, (numbers.Number, list, tuple)):
        raise ArgumentTypeError(f"[affine] shear is {shear!r}; it must be a number or a pair, in degrees.")
    if not isinstance(interpolation, str):
        raise ArgumentTypeError(f"[affine] interpolation is {interpolation!r}; it must be a name such as 'bilinear'.")
    if center is not None and not isinstance(center, (list, tuple)):
        raise ArgumentTypeError(f"[affine] center is {center!r}; it must be a pair (x, y).")
    angles = [shear, 0.0] if isinstance(shear, numbers.Number) else list(shear)
    if len(angles) == 1:
        angles *= 2
    if len(angles) != 2:
        raise ArgumentValueError(f"[affine] shear has {len(angles)} elements; it must have two.")
    return angles


def affine(
    img: Any, angle: float, translate: Sequence[float], scale: float, shear: float | Sequence[float],
    interpolation: str = "nearest", fill: Fill = 0, center: Sequence[float] | None = None,
) -> Any:  # fmt: skip
    """Rotates, shifts, scales and shears an image.

    Args:
        img: the image.
        angle: the rotation in degrees, clockwise. For an array it is counter-clockwise.
        translate: the shift in pixels, (x, y).
        scale: the factor of the size.
        shear: the shear in degrees, along x, or (x, y).
        interpolation: 'nearest', 'bilinear' or 'bicubic'; for arrays also 'area' and 'lanczos'.
        fill: the value of pixels outside of the image, or one for each channel.
        center: the center (x, y) of rotation and shear; the middle of the image unless given.

    Returns:
        an image of the same kind and size.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import affine
        >>> image = oar.arange(4.0).reshape([1, 2, 2])
        >>> affine(image, 0, [1, 0], 1.0, [0, 0]).tolist()
        [[[0.0, 0.0], [0.0, 2.0]]]
    """
    module = _module_for("affine", img)
    angles = _checked_affine(angle, translate, scale, shear, interpolation, center)
    if _is_numpy_image(img):
        middle = (img.shape[0] * 0.5, img.shape[1] * 0.5) if center is None else center
        return module.affine(img, float(angle), list(translate), scale, angles, interpolation, fill, middle)
    width, height = _checks.size_of("affine", img)
    if _is_pil_image(img):
        middle = (width * 0.5, height * 0.5) if center is None else center
    else:  # Places are counted from the middle. Paddle subtracts the height from x and the width from y.
        middle = (0.0, 0.0) if center is None else (center[0] - height * 0.5, center[1] - width * 0.5)
    matrix = _get_affine_matrix(middle, float(angle), [float(t) for t in translate], scale, angles)
    return module.affine(img, matrix, interpolation, fill)


def rotate(
    img: Any, angle: float, interpolation: str = "nearest", expand: bool = False,
    center: Sequence[float] | None = None, fill: Fill = 0,
) -> Any:  # fmt: skip
    """Rotates an image.

    Args:
        img: the image.
        angle: the rotation in degrees, counter-clockwise.
        interpolation: 'nearest', 'bilinear' or 'bicubic'; for arrays also 'area' and 'lanczos'.
        expand: whether the result is large enough for the whole image.
        center: the center (x, y) of the rotation; the middle of the image unless given.
        fill: the value of pixels outside of the image, or one for each channel.

    Returns:
        an image of the same kind.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import rotate
        >>> rotate(oar.arange(4.0).reshape([1, 2, 2]), 90).tolist()
        [[[1.0, 3.0], [0.0, 2.0]]]
    """
    middle = tuple(center) if isinstance(center, list) else center
    colour = tuple(fill) if isinstance(fill, list) else fill
    return _module_for("rotate", img).rotate(img, angle, interpolation, expand, middle, colour)


def _get_perspective_coeffs(startpoints: Any, endpoints: Any) -> list[float]:
    """The eight numbers of the perspective from the end points back to the start points."""
    rows, values = [], []
    for (u, v), (x, y) in zip(endpoints, startpoints):
        rows += [[u, v, 1, 0, 0, 0, -x * u, -x * v], [0, 0, 0, u, v, 1, -y * u, -y * v]]
        values += [x, y]
    return np.linalg.lstsq(np.array(rows, np.float64), np.array(values, np.float64), rcond=None)[0].tolist()


def perspective(
    img: Any, startpoints: Sequence[Sequence[float]], endpoints: Sequence[Sequence[float]],
    interpolation: str = "nearest", fill: Fill = 0,
) -> Any:  # fmt: skip
    """Moves four points of an image, and all others with them.

    Args:
        img: the image.
        startpoints: four points [x, y] of the image, usually its corners: top left, top right, bottom right, bottom left.
        endpoints: where they go.
        interpolation: 'nearest', 'bilinear' or 'bicubic'; for arrays also 'area' and 'lanczos'.
        fill: the value of pixels outside of the image, or one for each channel.

    Returns:
        an image of the same kind and size.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import perspective
        >>> corners = [[0, 0], [2, 0], [2, 2], [0, 2]]
        >>> moved = [[1, 0], [3, 0], [3, 2], [1, 2]]
        >>> perspective(np.array([[1, 2, 3]] * 3, 'uint8'), corners, moved)[0]
        array([0, 1, 2], dtype=uint8)
    """
    module = _module_for("perspective", img)
    if _is_numpy_image(img):
        return module.perspective(img, startpoints, endpoints, interpolation, fill)
    return module.perspective(img, _get_perspective_coeffs(startpoints, endpoints), interpolation, fill)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Drops the colours of an image.

    Args:
        img: the image.
        num_output_channels: 1, or 3 for three equal channels.

    Returns:
        an image of the same kind.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import to_grayscale
        >>> to_grayscale(np.array([[[255, 0, 0]]], 'uint8')).tolist()
        [[[76]]]
    """
    return _module_for("to_grayscale", img).to_grayscale(img, num_output_channels)


def normalize(img: Any, mean: Sequence[float], std: Sequence[float], data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """Subtracts a mean and divides by a deviation, channel by channel.

    Args:
        img: the image. One of Pillow becomes an array.
        mean: one number for each channel.
        std: one number for each channel.
        data_format: where the channels are, 'CHW' or 'HWC'.
        to_rgb: whether the last axis of an array is reversed first.

    Returns:
        an array, or a tensor for a tensor.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import normalize
        >>> normalize(oar.ones([3, 1, 1]), [0.5] * 3, [0.25] * 3).flatten().tolist()
        [2.0, 2.0, 2.0]
    """
    if _is_tensor_image(img):
        return _module_for("normalize", img).normalize(img, mean, std, data_format)
    from oar.vision.transforms import functional_cv2

    pixels = np.array(img).astype(np.float32) if _is_pil_image(img) else img
    return functional_cv2.normalize(pixels, mean, std, data_format, to_rgb)


def erase(img: Any, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Any:
    """Replaces a part of an image.

    Args:
        img: the image.
        i: the first row.
        j: the first column.
        h: the number of rows.
        w: the number of columns.
        v: the new value, or one for each channel, or an array or tensor of the part's shape.
        inplace: whether an array or a tensor is changed itself.

    Returns:
        an image of the same kind.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import erase
        >>> erase(oar.ones([1, 2, 3]), 0, 1, 2, 2, 0.0).tolist()
        [[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]
    """
    return _module_for("erase", img).erase(img, i, j, h, w, v, inplace=inplace)
