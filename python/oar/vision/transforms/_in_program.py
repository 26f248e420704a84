"""Random transforms of tensors in programs: what is drawn is drawn by ops, anew in each run, and sizes stay known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import oar
from oar._C import ArgumentValueError, Tensor

__all__ = ["erased", "flipped", "random_crop", "random_angle", "resized_crop"]

_TRIES = 10


def flipped(img: Tensor, prob: float, axis: int) -> Tensor:
    """The image, or with this probability its mirror image."""
    return oar.where(oar.rand([1]) < prob, img.flip(axis=[axis]), img)


def random_angle(degrees: Sequence[float]) -> Tensor:
    return oar.uniform([1], dtype="float32", min=degrees[0], max=degrees[1])


def random_crop(img: Tensor, height: int, width: int) -> Tensor:
    """A window of this size anywhere in the image."""
    rows = oar.randint(0, img.shape[-2] - height + 1, [1]) + oar.arange(height)
    columns = oar.randint(0, img.shape[-1] - width + 1, [1]) + oar.arange(width)
    return img.index_select(rows, axis=-2).index_select(columns, axis=-1)


def _drawn(area: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Ten pairs of sides, whose area and ratio are random."""
    target = oar.uniform([_TRIES], min=scale[0], max=scale[1]) * float(area)
    aspect = oar.exp(oar.uniform([_TRIES], min=math.log(ratio[0]), max=math.log(ratio[1])))
    return oar.round(oar.sqrt(target * aspect)), oar.round(oar.sqrt(target / aspect))


def _first_of(values: Tensor, fits: Tensor, otherwise: float) -> Tensor:
    """The first value that fits, [1]."""
    index = oar.argmax(fits.astype("int32"), axis=0, keepdim=True)
    return oar.where(fits.any(), oar.gather(values, index), oar.full([1], otherwise))


def _resampled(img: Tensor, axis: int, start: Tensor, length: Tensor, count: int, mode: str) -> Tensor:
    """``count`` new positions along an axis, from a window of it."""
    step, positions = length / count, oar.arange(count, dtype="float32")
    at = (positions * step).floor() if mode == "nearest" else (positions + 0.5) * step - 0.5
    at = oar.minimum(oar.clip(at, min=0.0), length - 1.0)
    before = at.floor()
    nearest = img.index_select((before + start).astype("int32"), axis=axis)
    if mode == "nearest":
        return nearest
    following = img.index_select((oar.minimum(before + 1.0, length - 1.0) + start).astype("int32"), axis=axis)
    part = at - before
    return nearest + (following - nearest) * (part.unsqueeze(1) if axis == -2 else part)


def resized_crop(
    img: Tensor, size: Sequence[int], scale: Sequence[float], ratio: Sequence[float], interpolation: str,
) -> Tensor:  # fmt: skip
    """A random window with a new size. Its rows and columns are looked up, so that no size depends on what was drawn."""
    if interpolation not in ("bilinear", "nearest"):
        raise ArgumentValueError(f"[RandomResizedCrop] interpolation is {interpolation!r}; in a program it can be 'bilinear' or "
                                 f"'nearest'.")
    height, width = img.shape[-2:]
    wide, high = _drawn(height * width, scale, ratio)
    fits = (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
    middle_width, middle_height = float(width), float(height)
    if width / height < min(ratio):
        middle_height = round(width / min(ratio))
    elif width / height > max(ratio):
        middle_width = round(height * max(ratio))
    new_width, new_height = _first_of(wide, fits, middle_width), _first_of(high, fits, middle_height)
    place = oar.where(fits.any(), oar.rand([2]), oar.full([2], 0.5))  # the middle is between the others
    top = oar.floor(place[0:1] * (height - new_height + fits.any().astype("float32")))
    left = oar.floor(place[1:2] * (width - new_width + fits.any().astype("float32")))
    rows = _resampled(img, -2, top, new_height, int(size[0]), interpolation)
    return _resampled(rows, -1, left, new_width, int(size[1]), interpolation)


def erased(img: Tensor, prob: float, scale: Sequence[float], ratio: Sequence[float], value: Any) -> Tensor:
    """The image, or with this probability one with a random part replaced. ``value`` None draws normal numbers."""
    height, width = img.shape[-2:]
    high, wide = _drawn(height * width, scale, ratio)
    fits = (high < height) & (wide < width)
    new_height, new_width = _first_of(high, fits, 0.0), _first_of(wide, fits, 0.0)
    place = oar.rand([2])
    top = oar.floor(place[0:1] * (height - new_height + 1.0))
    left = oar.floor(place[1:2] * (width - new_width + 1.0))
    rows, columns = oar.arange(height, dtype="float32").unsqueeze(1), oar.arange(width, dtype="float32").unsqueeze(0)
    part = (rows >= top) & (rows < top + new_height) & (columns >= left) & (columns < left + new_width)
    part = part & (oar.rand([1]) < prob)
    if value is None:
        new = oar.randn(img.shape).astype(img.dtype)
    else:
        new = oar.to_tensor(np.asarray(value), dtype=img.dtype).reshape([-1, 1, 1])
    return oar.where(part, new, img)
