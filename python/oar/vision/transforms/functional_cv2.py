"""Transforms of arrays [height, width, channels] or [height, width]. Values are OpenCV's, which is not needed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oar._C import ArgumentTypeError, ArgumentValueError, Tensor, image_resize, image_shift_hue, image_warp
from oar._creation import to_tensor as tensor_of
from oar.vision import _pixels
from oar.vision.transforms import _checks

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill, Padding, Size

__all__: list[str] = []

_NATIVE = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))


def _natively(img: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Runs a native function, which wants three axes, contiguous memory and one of three dtypes."""
    source = np.ascontiguousarray(img if img.ndim == 3 else img[:, :, None])
    if source.dtype in _NATIVE:
        result = compute(source)
    elif source.dtype.kind in "iub":
        limits = np.iinfo(source.dtype) if source.dtype.kind != "b" else np.iinfo(np.uint8)
        result = np.clip(np.rint(compute(source.astype(np.float64))), limits.min, limits.max).astype(source.dtype)
    else:
        result = compute(source.astype(np.float64)).astype(source.dtype)
    return result if img.ndim == 3 else result[:, :, 0]


def _channels(img: np.ndarray) -> int:
    return img.shape[2] if img.ndim == 3 else 1


def _scalar(function: str, fill: Any, channels: int) -> list[float]:
    """OpenCV's scalars: a number alone is that of the first channel, and what is missing is 0."""
    if not isinstance(fill, (numbers.Number, Sequence)) or isinstance(fill, str):
        raise ArgumentTypeError(f"[{function}] fill is {fill!r}; it must be a number or a sequence of numbers.")
    values = [float(x) for x in (fill if isinstance(fill, Sequence) else [fill])]  # type: ignore[list-item]
    return (values + [0.0] * channels)[:channels]


def _levels(table: np.ndarray) -> np.ndarray:
    return table.clip(0, 255).astype(np.uint8)


def _bytes_only(function: str, img: np.ndarray) -> None:
    if img.dtype != np.uint8:
        raise ArgumentTypeError(f"[{function}] the image is an array of {img.dtype}; it must be uint8. Convert it: "
                                f"img.astype('uint8').")


def _in_colour(function: str, img: np.ndarray) -> None:
    if img.ndim != 3 or img.shape[2] != 3:
        raise ArgumentValueError(f"[{function}] the image is an array of shape {list(img.shape)}; it must be [height, width, 3].")


def to_tensor(pic: np.ndarray, data_format: str = "CHW") -> Tensor:
    _checks.check_data_format("to_tensor", data_format)
    pixels = pic if pic.ndim == 3 else pic[:, :, None]
    if pixels.dtype == np.uint8:
        return _pixels.scaled(pixels, data_format)
    return tensor_of(np.ascontiguousarray(pixels.transpose(2, 0, 1) if data_format == "CHW" else pixels))


def resize(img: np.ndarray, size: Size, interpolation: str = "bilinear") -> np.ndarray:
    wanted = _checks.checked_size("resize", size)
    if isinstance(wanted, int):
        new = _checks.shorter_side_to(wanted, img.shape[1], img.shape[0])
        if new is None:
            return img
    else:
        new = (int(wanted[0]), int(wanted[1]))
    _checks.check_new_size("resize", *new)
    return _natively(img, lambda source: image_resize(source, *new, interpolation))


def pad(img: np.ndarray, padding: Padding, fill: Fill = 0, padding_mode: str = "constant") -> np.ndarray:
    left, top, right, bottom = _checks.sides_of("pad", padding, fill, padding_mode)
    widths = ((top, bottom), (left, right), (0, 0))[:img.ndim]
    if padding_mode != "constant":
        return np.pad(img, widths, padding_mode)  # type: ignore[call-overload]
    padded = np.empty((img.shape[0] + top + bottom, img.shape[1] + left + right, *img.shape[2:]), img.dtype)
    padded[...] = _scalar("pad", fill, _channels(img)) if img.ndim == 3 else _scalar("pad", fill, 1)[0]
    padded[top:top + img.shape[0], left:left + img.shape[1]] = img
    return padded


def crop(img: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    return img[top:top + height, left:left + width, ...]


def center_crop(img: np.ndarray, output_size: Size) -> np.ndarray:
    return crop(img, *_checks.middle(output_size, img.shape[0], img.shape[1]))


def hflip(img: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(img[:, ::-1])


def vflip(img: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(img[::-1])


def adjust_brightness(img: np.ndarray, brightness_factor: float) -> np.ndarray:
    return _levels(np.arange(256) * brightness_factor)[img.astype(np.uint8)]


def adjust_contrast(img: np.ndarray, contrast_factor: float) -> np.ndarray:
    _bytes_only("adjust_contrast", img)
    return _levels((np.arange(256) - 74) * contrast_factor + 74)[img]


def adjust_saturation(img: np.ndarray, saturation_factor: float) -> np.ndarray:
    """Paddle's meaning: the factor is drawn again, between 1 - saturation_factor and 1 + saturation_factor."""
    _in_colour("adjust_saturation", img)
    source = img.astype(np.float32)
    factor = np.random.uniform(max(0, 1 - saturation_factor), 1 + saturation_factor)
    weights = np.array([0.114, 0.587, 0.299], np.float32)  # blue, green, red
    gray = (source[..., 0] * weights[0] + source[..., 1] * weights[1] + source[..., 2] * weights[2])[..., None]
    return (source * factor + gray * (1 - factor)).clip(0, 255).astype(img.dtype)


def adjust_hue(img: np.ndarray, hue_factor: float) -> np.ndarray:
    _checks.check_hue("adjust_hue", hue_factor)
    _in_colour("adjust_hue", img)
    return image_shift_hue(np.ascontiguousarray(img.astype(np.uint8)), int(hue_factor * 255)).astype(img.dtype)


def _rotation(center: Sequence[float], angle: float, scale: float) -> np.ndarray:
    """The matrix that rotates about a center, counter-clockwise in an image."""
    cos, sin = scale * math.cos(math.radians(angle)), scale * math.sin(math.radians(angle))
    x, y = center
    return np.array([[cos, sin, (1 - cos) * x - sin * y], [-sin, cos, sin * x + (1 - cos) * y], [0.0, 0.0, 1.0]])


def _warped(
    function: str, img: np.ndarray, forward: np.ndarray, width: int, height: int, interpolation: str, fill: Any,
) -> np.ndarray:  # fmt: skip
    """The image after a transform that is given as the matrix from source to result."""
    try:
        back = np.linalg.inv(forward)
    except np.linalg.LinAlgError:
        back = np.zeros((3, 3))
        back[2, 2] = 1
    colour = _scalar(function, fill, _channels(img))
    return _natively(
        img, lambda source: image_warp(source, back.ravel().tolist(), height, width, interpolation, colour))


def affine(
    img: np.ndarray, angle: float, translate: Sequence[float], scale: float, shear: Sequence[float],
    interpolation: str = "nearest", fill: Fill = 0, center: Sequence[float] | None = None,
) -> np.ndarray:  # fmt: skip
    """Paddle's meaning: the shift is that of the corner, whatever the center of the rotation."""
    height, width = img.shape[:2]
    turned = _rotation((width / 2.0, height / 2.0) if center is None else center, angle, scale)
    forward = np.eye(3)
    forward[0] = turned[0] + math.tan(math.radians(shear[1])) * turned[1]
    forward[1] = turned[1] + math.tan(math.radians(shear[0])) * turned[0]
    forward[:2, 2] = translate
    return _warped("affine", img, forward, width, height, interpolation, [fill] * 3 if isinstance(fill, int) else fill)


def _expanded(angle: float, center: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """The width and height of the rotated image."""
    turn = -math.radians(angle)
    cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
    shift_x = center[0] - cos * center[0] - sin * center[1]
    shift_y = center[1] + sin * center[0] - cos * center[1]
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    xs = [cos * x + sin * y + shift_x for x, y in corners]
    ys = [-sin * x + cos * y + shift_y for x, y in corners]
    return math.ceil(max(xs)) - math.floor(min(xs)), math.ceil(max(ys)) - math.floor(min(ys))


def rotate(
    img: np.ndarray, angle: float, interpolation: str = "nearest", expand: bool = False,
    center: Sequence[float] | None = None, fill: Fill = 0,
) -> np.ndarray:  # fmt: skip
    height, width = img.shape[:2]
    middle = (width / 2.0, height / 2.0) if center is None else center
    forward = _rotation(middle, angle, 1.0)
    if expand:
        new_width, new_height = _expanded(angle, middle, width, height)
        forward[0, 2] += (new_width - width) * 0.5
        forward[1, 2] += (new_height - height) * 0.5
        width, height = new_width, new_height
    return _warped("rotate", img, forward, width, height, interpolation, fill)


def _perspective_matrix(startpoints: Any, endpoints: Any) -> np.ndarray:
    """The matrix that maps four points to four others."""
    start, end = np.asarray(startpoints, np.float64), np.asarray(endpoints, np.float64)
    rows, values = [], []
    for (x, y), (u, v) in zip(start, end):
        rows += [[x, y, 1, 0, 0, 0, -x * u, -y * u], [0, 0, 0, x, y, 1, -x * v, -y * v]]
        values += [u, v]
    try:
        entries = np.linalg.solve(np.array(rows), np.array(values))
    except np.linalg.LinAlgError:
        raise ArgumentValueError(f"[perspective] the points {np.asarray(startpoints).tolist()} and "
                                 f"{np.asarray(endpoints).tolist()} define no transform. Three of them must not lie on one "
                                 f"line.") from None
    return np.append(entries, 1.0).reshape(3, 3)


def perspective(
    img: np.ndarray, startpoints: Any, endpoints: Any, interpolation: str = "nearest", fill: Fill = 0,
) -> np.ndarray:  # fmt: skip
    forward = _perspective_matrix(startpoints, endpoints)
    return _warped("perspective", img, forward, img.shape[1], img.shape[0], interpolation, fill)


def to_grayscale(img: np.ndarray, num_output_channels: int = 1) -> np.ndarray:
    _checks.check_gray_channels("to_grayscale", num_output_channels)
    _in_colour("to_grayscale", img)
    if img.dtype == np.uint8:
        wide = img.astype(np.int32)
        gray = ((wide[..., 0] * 9798 + wide[..., 1] * 19235 + wide[..., 2] * 3735 + (1 << 14)) >> 15).astype(np.uint8)
    else:
        gray = (img[..., 0] * 0.299 + img[..., 1] * 0.587 + img[..., 2] * 0.114).astype(img.dtype)
    return gray[:, :, None] if num_output_channels == 1 else np.broadcast_to(gray[:, :, None], img.shape)


def normalize(
    img: np.ndarray, mean: Sequence[float], std: Sequence[float], data_format: str = "CHW", to_rgb: bool = False,
) -> np.ndarray:  # fmt: skip
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    means, stds = np.float32(np.array(mean).reshape(shape)), np.float32(np.array(std).reshape(shape))
    return ((img[..., ::-1] if to_rgb else img) - means) / stds


def erase(img: np.ndarray, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> np.ndarray:
    erased = img if inplace else img.copy()
    erased[i:i + h, j:j + w, ...] = v
    return erased
