"""Transforms of tensors [channels, height, width], or [height, width, channels] with ``data_format='HWC'``. Most take a batch in
front, too. They are made of ops: gradients and programs work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import oar
from oar._C import ArgumentTypeError, ArgumentValueError, Tensor
from oar.nn import functional as F
from oar.vision.transforms import _checks

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill, Padding, Size

__all__: list[str] = []


def _check_image(function: str, img: Tensor, data_format: str = "CHW") -> None:
    if img.ndim not in (3, 4):
        raise RuntimeError(f"[{function}] the image is a tensor with {img.ndim} axes. It must be "
                           f"[channels, height, width], or have a batch in front.")
    if data_format.lower() not in ("chw", "hwc"):
        raise RuntimeError(f"[{function}] data_format is {data_format!r}; it can be 'CHW' or 'HWC'.")


def _first(data_format: str) -> bool:
    return data_format.lower() == "chw"


def _axes(data_format: str) -> tuple[int, int, int]:
    """Those of the channels, of the height and of the width."""
    return (-3, -2, -1) if _first(data_format) else (-1, -3, -2)


def _check_channels(function: str, img: Tensor) -> int:
    channels = img.shape[-3]
    if channels not in (1, 3):
        raise ArgumentValueError(f"[{function}] the image has {channels} channels; it must have 1 or 3, in the third axis "
                                 f"from the end.")
    return channels


def _check_factor(function: str, name: str, value: float) -> None:
    if value < 0:
        raise ArgumentValueError(f"[{function}] {name} is {value}; it must not be negative.")


def _constant(values: Any, like: Tensor, dtype: Any = None) -> Tensor:
    return oar.to_tensor(np.asarray(values), dtype=dtype, place=like.place)


def normalize(img: Tensor, mean: Sequence[float], std: Sequence[float], data_format: str = "CHW") -> Tensor:
    _check_image("normalize", img, data_format)
    shape = [-1, 1, 1] if _first(data_format) else [-1]
    dtype = img.dtype if img.is_floating_point() else "float32"
    means, stds = (_constant(values, img, dtype).reshape(shape) for values in (mean, std))
    return (img - means) / stds


def to_grayscale(img: Tensor, num_output_channels: int = 1, data_format: str = "CHW") -> Tensor:
    _check_image("to_grayscale", img, data_format)
    _checks.check_gray_channels("to_grayscale", num_output_channels)
    weights = _constant([0.2989, 0.5870, 0.1140], img, "float32").astype(img.dtype)
    axis = _axes(data_format)[0]
    gray = (img * (weights.reshape([-1, 1, 1]) if _first(data_format) else weights)).sum(axis=axis, keepdim=True)
    shape = list(gray.shape)
    shape[axis] = num_output_channels
    return gray.astype(img.dtype).expand(shape)


# ---- Places -------------------------------------------------------------------------------------------


def vflip(img: Tensor, data_format: str = "CHW") -> Tensor:
    _check_image("vflip", img, data_format)
    return img.flip(axis=[_axes(data_format)[1]])


def hflip(img: Tensor, data_format: str = "CHW") -> Tensor:
    _check_image("hflip", img, data_format)
    return img.flip(axis=[_axes(data_format)[2]])


def crop(img: Tensor, top: Any, left: Any, height: Any, width: Any, data_format: str = "CHW") -> Tensor:
    _check_image("crop", img, data_format)
    rows, columns = slice(top, top + height), slice(left, left + width)
    return img[..., rows, columns] if _first(data_format) else img[..., rows, columns, :]


def center_crop(img: Tensor, output_size: Size, data_format: str = "CHW") -> Tensor:
    _check_image("center_crop", img, data_format)
    _, rows, columns = _axes(data_format)
    window = _checks.middle(output_size, img.shape[rows], img.shape[columns])
    return crop(img, *window, data_format=data_format)


def erase(img: Tensor, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> Tensor:
    _check_image("erase", img)
    if oar.in_dynamic_mode():
        erased = img if inplace else img.clone()
        erased[..., i:i + h, j:j + w] = v
        return erased
    return oar.static.setitem(img, (..., slice(i, i + h), slice(j, j + w)), v)


def pad(img: Tensor, padding: Padding, fill: Fill = 0, padding_mode: str = "constant", data_format: str = "CHW") -> Tensor:
    _check_image("pad", img, data_format)
    left, top, right, bottom = _checks.sides_of("pad", padding, fill, padding_mode)
    if padding_mode == "symmetric":
        raise ArgumentValueError("[pad] padding_mode is 'symmetric', which tensors do not have. Use 'reflect' or 'edge', or pad "
                                 "an array or an image of Pillow.")
    if not isinstance(fill, (int, float)):
        raise ArgumentTypeError(f"[pad] fill is {fill!r}; for a tensor it must be one number.")
    mode = "replicate" if padding_mode == "edge" else padding_mode
    batch = img.unsqueeze(0) if img.ndim == 3 else img
    padded = F.pad(batch, pad=[left, right, top, bottom], mode=mode, value=float(fill), data_format="N" + data_format.upper())
    return padded.squeeze(0) if img.ndim == 3 else padded


def resize(img: Tensor, size: Size, interpolation: str = "bilinear", data_format: str = "CHW") -> Tensor:
    _check_image("resize", img, data_format)
    wanted = _checks.checked_size("resize", size)
    if isinstance(wanted, int):
        _, rows, columns = _axes(data_format)
        height, width = img.shape[rows], img.shape[columns]
        if not (isinstance(height, int) and isinstance(width, int)) or height <= 0 or width <= 0:
            raise NotImplementedError(f"[resize] the height and width are {height} and {width}; one number as the new size "
                                      f"needs known ones. Pass a pair.")
        new = _checks.shorter_side_to(wanted, width, height)
        if new is None:
            return img
    else:
        new = (int(wanted[0]), int(wanted[1]))
    _checks.check_new_size("resize", *new)
    batch = img.unsqueeze(0) if img.ndim == 3 else img
    resized = F.interpolate(batch, size=list(new), mode=interpolation.lower(), data_format="N" + data_format.upper())
    return resized.squeeze(0) if img.ndim == 3 else resized


# ---- Colours ------------------------------------------------------------------------------------------


def _blend(img: Tensor, other: Tensor, ratio: float) -> Tensor:
    """``ratio`` of the one and the rest of the other, in the range of the dtype."""
    most = 1.0 if img.is_floating_point() else 255.0
    dtype = img.dtype if img.is_floating_point() else "float32"
    mixed = oar.lerp(other.astype(dtype), img.astype(dtype), float(ratio))
    return mixed.clip(0, most).astype(img.dtype)


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    _check_image("adjust_brightness", img)
    _check_factor("adjust_brightness", "brightness_factor", brightness_factor)
    _check_channels("adjust_brightness", img)
    return _blend(img, oar.zeros_like(img), brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    _check_image("adjust_contrast", img)
    _check_factor("adjust_contrast", "contrast_factor", contrast_factor)
    gray = img if _check_channels("adjust_contrast", img) == 1 else to_grayscale(img)
    dtype = img.dtype if img.is_floating_point() else "float32"
    return _blend(img, gray.astype(dtype).mean(axis=[-3, -2, -1], keepdim=True), contrast_factor)


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    _check_image("adjust_saturation", img)
    _check_factor("adjust_saturation", "saturation_factor", saturation_factor)
    if _check_channels("adjust_saturation", img) == 1:
        return img
    return _blend(img, to_grayscale(img), saturation_factor)


def _hsv_of(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, all between 0 and 1, without the axis of channels."""
    red, green, blue = img.unbind(axis=-3)
    most, least = img.max(axis=-3), img.min(axis=-3)
    spread = most - least
    is_gray = spread == 0
    one = oar.ones_like(most)
    divisor = oar.where(is_gray, one, spread)
    from_red, from_green, from_blue = ((most - c) / divisor for c in (red, green, blue))
    hue = oar.where(
        most == red, from_blue - from_green,
        oar.where(most == green, from_red - from_blue + 2.0, from_green - from_red + 4.0))
    hue = hue / 6.0 + 1.0
    return hue - hue.floor(), spread / oar.where(is_gray, one, most), most


def _rgb_of(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    sector = (hue * 6.0).floor()
    part = hue * 6.0 - sector
    low = (value * (1.0 - saturation)).clip(0.0, 1.0)
    falling = (value * (1.0 - saturation * part)).clip(0.0, 1.0)
    rising = (value * (1.0 - saturation * (1.0 - part))).clip(0.0, 1.0)
    sector = sector.astype("int32") % 6

    def channel(*levels: Tensor) -> Tensor:
        chosen = levels[5]
        for i in range(4, -1, -1):
            chosen = oar.where(sector == i, levels[i], chosen)
        return chosen

    return oar.stack([channel(value, falling, low, low, rising, value),
                      channel(rising, value, value, falling, low, low),
                      channel(low, low, rising, value, value, falling)], axis=-3)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    _check_image("adjust_hue", img)
    _checks.check_hue("adjust_hue", hue_factor)
    if _check_channels("adjust_hue", img) == 1:
        return img
    bytes_given = img.dtype == oar.uint8
    hue, saturation, value = _hsv_of(img.astype("float32") / 255.0 if bytes_given else img)
    turned = hue + hue_factor
    colours = _rgb_of(turned - turned.floor(), saturation, value)
    return (colours * 255.0).astype("uint8") if bytes_given else colours


# ---- Sampling -----------------------------------------------------------------------------------------


def _positions(count: Any, first: float) -> Tensor:
    """``count`` numbers, one apart. In a program the count may be known only when it runs."""
    if isinstance(count, Tensor):
        return oar.cumsum(oar.ones([count], dtype="float32"), axis=0) + (first - 1.0)
    return oar.arange(count, dtype="float32") + first


def _sampled(img: Tensor, grid: Tensor, mode: str, fill: Any) -> Tensor:
    """The image [batch, channels, height, width] at the places of the grid [1, height, width, 2]."""
    if img.shape[0] > 1:
        grid = grid.expand([img.shape[0], *grid.shape[1:]])
    pixels = img if img.is_floating_point() else img.astype("float32")
    if fill is None:
        sampled = F.grid_sample(pixels, grid, mode=mode, padding_mode="zeros", align_corners=False)
        return sampled.astype(img.dtype)
    ones = oar.ones([img.shape[0], 1, img.shape[2], img.shape[3]], dtype=pixels.dtype)
    both = F.grid_sample(oar.concat([pixels, ones], axis=1), grid, mode=mode, padding_mode="zeros", align_corners=False)
    sampled, inside = both[:, :-1], both[:, -1:]
    colour = _constant(fill if isinstance(fill, Sequence) else [fill], img, pixels.dtype).reshape([1, -1, 1, 1])
    if mode == "nearest":
        inside = (inside >= 0.5).astype(pixels.dtype)
    return (sampled * inside + (1.0 - inside) * colour).astype(img.dtype)


def _with_batch(img: Tensor, data_format: str) -> Tensor:
    batch = img.unsqueeze(0) if img.ndim == 3 else img
    return batch if _first(data_format) else batch.transpose([0, 3, 1, 2])


def _as_given(batch: Tensor, img: Tensor, data_format: str) -> Tensor:
    result = batch if _first(data_format) else batch.transpose([0, 2, 3, 1])
    return result.squeeze(0) if img.ndim == 3 else result


def _affine_grid(matrix: Tensor, width: int, height: int, new_width: Any, new_height: Any) -> Tensor:
    """Places of an affine transform [2, 3] about the middle of the image, as ``grid_sample`` wants them."""
    x = (_positions(new_width, 0.5) - new_width * 0.5).unsqueeze(0)
    y = (_positions(new_height, 0.5) - new_height * 0.5).unsqueeze(1)
    across = (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / (0.5 * width)
    down = (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / (0.5 * height)
    return oar.stack([across, down], axis=-1).unsqueeze(0)


def affine(
    img: Tensor, matrix: Sequence[float], interpolation: str = "nearest", fill: Any = None, data_format: str = "CHW",
) -> Tensor:  # fmt: skip
    _check_image("affine", img, data_format)
    batch = _with_batch(img, data_format)
    height, width = batch.shape[-2:]
    grid = _affine_grid(_constant(matrix, img, "float32").reshape([2, 3]), width, height, width, height)
    colour = (fill,) * batch.shape[1] if isinstance(fill, int) else fill
    return _as_given(_sampled(batch, grid, interpolation, colour), img, data_format)


def _rotation(angle: Any, x: float, y: float) -> Tensor:
    """The matrix [2, 3] of a rotation about a place; the angle may be a tensor of a program."""
    if isinstance(angle, Tensor):
        turn = (-angle % 360.0).reshape([1]) * (math.pi / 180)
        cos, sin = oar.cos(turn), oar.sin(turn)
        rows = [cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y]
        return oar.concat(rows).reshape([2, 3])
    turn = math.radians(-angle % 360)
    cosine, sine = math.cos(turn), math.sin(turn)
    entries = [cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y]
    return oar.to_tensor(entries, dtype="float32").reshape([2, 3])


def _expanded(matrix: Tensor, width: int, height: int) -> tuple[Any, Any]:
    """The size of the rotated image: whole pixels around its corners."""
    half_width, half_height = 0.5 * width, 0.5 * height
    corners = [[-half_width, -half_width, half_width, half_width], [-half_height, half_height, half_height, -half_height],
               [1.0] * 4]
    places = oar.matmul(matrix, oar.to_tensor(np.array(corners, np.float32)))
    sizes = places.max(axis=1).ceil() - places.min(axis=1).floor()
    if oar.in_dynamic_mode():
        return int(sizes[0]), int(sizes[1])
    whole = sizes.astype("int32")
    return whole[0], whole[1]


def rotate(
    img: Tensor, angle: Any, interpolation: str = "nearest", expand: bool = False,
    center: Sequence[float] | None = None, fill: Any = None, data_format: str = "CHW",
) -> Tensor:  # fmt: skip
    _check_image("rotate", img, data_format)
    batch = _with_batch(img, data_format)
    height, width = batch.shape[-2:]
    x, y = (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)
    matrix = _rotation(angle, x, y)
    new_width, new_height = _expanded(matrix, width, height) if expand else (width, height)
    grid = _affine_grid(matrix, width, height, new_width, new_height)
    return _as_given(_sampled(batch, grid, interpolation, fill), img, data_format)


def perspective(
    img: Tensor, coeffs: Sequence[float], interpolation: str = "nearest", fill: Any = None, data_format: str = "CHW",
) -> Tensor:  # fmt: skip
    _check_image("perspective", img, data_format)
    batch = _with_batch(img, data_format)
    height, width = batch.shape[-2:]
    a, b, c, d, e, f, g, h = (float(value) for value in coeffs)
    x, y = _positions(width, 0.5).unsqueeze(0), _positions(height, 0.5).unsqueeze(1)
    factor = g * x + h * y + 1.0
    across = (a * x + b * y + c) / (0.5 * width) / factor - 1.0
    down = (d * x + e * y + f) / (0.5 * height) / factor - 1.0
    grid = oar.stack([across, down], axis=-1).unsqueeze(0)
    return _as_given(_sampled(batch, grid, interpolation, fill), img, data_format)
