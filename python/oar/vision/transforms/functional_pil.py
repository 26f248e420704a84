"""Transforms of images of Pillow."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from oar._C import ArgumentValueError, Tensor
from oar._creation import to_tensor as tensor_of
from oar.vision import _pixels
from oar.vision._file_image import FileImage
from oar.vision.transforms import _checks

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill, Padding, Size

__all__: list[str] = []

_FILTERS = {
    "nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX, "lanczos": Image.Resampling.LANCZOS, "hamming": Image.Resampling.HAMMING,
}  # fmt: skip


def _filter(function: str, interpolation: str) -> Any:
    if interpolation not in _FILTERS:
        raise ArgumentValueError(f"[{function}] interpolation is {interpolation!r}; for an image of Pillow it can be "
                                 f"{', '.join(_FILTERS)}.")
    return _FILTERS[interpolation]


def _pending(img: Image.Image) -> bool:
    """Whether Pillow has not seen its pixels yet."""
    return isinstance(img, FileImage) and img.pending


def _colour(fill: Fill) -> Any:
    return (fill,) * 3 if isinstance(fill, int) else tuple(fill) if isinstance(fill, Sequence) else fill


def to_tensor(pic: Image.Image, data_format: str = "CHW") -> Tensor:
    _checks.check_data_format("to_tensor", data_format)
    if _pending(pic):
        return _pixels.scaled(pic.pixels(), data_format)
    wide = {"I": np.int32, "I;16": np.int32, "F": np.float32}.get(pic.mode)
    pixels = np.asarray(pic, wide)
    if pic.mode == "1":
        pixels = pixels.astype(np.uint8) * 255
    pixels = pixels.reshape(pic.size[1], pic.size[0], -1)
    if pixels.dtype == np.uint8:
        return _pixels.scaled(pixels, data_format)
    return tensor_of(np.ascontiguousarray(pixels.transpose(2, 0, 1)) if data_format == "CHW" else pixels.copy())


def resize(img: Image.Image, size: Size, interpolation: str = "bilinear") -> Image.Image:
    chosen = _filter("resize", interpolation)
    wanted = _checks.checked_size("resize", size)
    if isinstance(wanted, int):
        new = _checks.shorter_side_to(wanted, *img.size)
        if new is None:
            return img
    else:
        new = (int(wanted[0]), int(wanted[1]))
    _checks.check_new_size("resize", *new)
    if _pending(img):
        return img.resized(*new, interpolation)
    return img.resize((new[1], new[0]), chosen)


def pad(img: Image.Image, padding: Padding, fill: Fill = 0, padding_mode: str = "constant") -> Image.Image:
    left, top, right, bottom = _checks.sides_of("pad", padding, fill, padding_mode)
    palette = img.getpalette() if img.mode == "P" else None
    if padding_mode == "constant":
        colour: Any = tuple(fill) if isinstance(fill, list) else fill
        padded = ImageOps.expand(img, border=(left, top, right, bottom), fill=colour)
    else:
        pixels = np.asarray(img)
        widths = ((top, bottom), (left, right), (0, 0))[:pixels.ndim]
        padded = Image.fromarray(np.pad(pixels, widths, padding_mode))  # type: ignore[call-overload]
    if palette is not None:
        padded.putpalette(palette)
    return padded


def crop(img: Image.Image, top: int, left: int, height: int, width: int) -> Image.Image:
    if _pending(img) and top >= 0 and left >= 0 and height > 0 and width > 0:
        if top + height <= img.height and left + width <= img.width:
            return img.window(top, left, height, width)
    return img.crop((left, top, left + width, top + height))


def center_crop(img: Image.Image, output_size: Size) -> Image.Image:
    return crop(img, *_checks.middle(output_size, img.height, img.width))


def hflip(img: Image.Image) -> Image.Image:
    return img.flipped(True) if _pending(img) else img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Image.Image) -> Image.Image:
    return img.flipped(False) if _pending(img) else img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def adjust_brightness(img: Image.Image, brightness_factor: float) -> Image.Image:
    return ImageEnhance.Brightness(img).enhance(brightness_factor)


def adjust_contrast(img: Image.Image, contrast_factor: float) -> Image.Image:
    return ImageEnhance.Contrast(img).enhance(contrast_factor)


def adjust_saturation(img: Image.Image, saturation_factor: float) -> Image.Image:
    return ImageEnhance.Color(img).enhance(saturation_factor)


def adjust_hue(img: Image.Image, hue_factor: float) -> Image.Image:
    _checks.check_hue("adjust_hue", hue_factor)
    if img.mode in ("L", "1", "I", "F"):
        return img
    hue, saturation, value = img.convert("HSV").split()
    turned = ((np.asarray(hue, np.int16) + int(hue_factor * 255)) % 256).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(img.mode)


def affine(img: Image.Image, matrix: Sequence[float], interpolation: str = "nearest", fill: Fill = 0) -> Image.Image:
    chosen = _filter("affine", interpolation)
    return img.transform(img.size, Image.Transform.AFFINE, matrix, chosen, fillcolor=_fill_for(img, fill))


def rotate(
    img: Image.Image, angle: float, interpolation: str = "nearest", expand: bool = False,
    center: tuple[float, float] | None = None, fill: Fill = 0,
) -> Image.Image:  # fmt: skip
    return img.rotate(angle, _filter("rotate", interpolation), expand, center, fillcolor=_fill_for(img, fill))


def perspective(
    img: Image.Image, coeffs: Sequence[float], interpolation: str = "nearest", fill: Fill = 0,
) -> Image.Image:  # fmt: skip
    chosen = _filter("perspective", interpolation)
    return img.transform(img.size, Image.Transform.PERSPECTIVE, coeffs, chosen, fillcolor=_fill_for(img, fill))


def _fill_for(img: Image.Image, fill: Fill) -> Any:
    """Pillow wants as many numbers as the image has bands."""
    colour = _colour(fill)
    bands = len(img.getbands())
    if isinstance(fill, numbers.Number) and bands != 3:
        return fill if bands == 1 else (fill,) * bands
    return colour


def to_grayscale(img: Image.Image, num_output_channels: int = 1) -> Image.Image:
    _checks.check_gray_channels("to_grayscale", num_output_channels)
    gray = img.convert("L")
    return gray if num_output_channels == 1 else Image.merge("RGB", (gray, gray, gray))


def erase(img: Image.Image, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Image.Image:
    pixels = np.array(img, dtype=np.uint8)
    pixels[i:i + h, j:j + w, ...] = v
    return Image.fromarray(pixels)
