"""What kind of image an argument is, and the checks that all kinds share."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy as np

from oar._C import ArgumentTypeError, ArgumentValueError, Tensor

__all__ = ["Fill", "Padding", "Size", "is_numpy_image", "is_pil_image", "is_tensor_image", "refuse", "shorter_side_to",
           "sides_of", "size_of"]

Size = Union[int, Sequence[int]]
Padding = Union[int, Sequence[int]]
Fill = Union[int, float, Sequence[float]]

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def is_pil_image(img: Any) -> bool:
    """Whether it is an image of Pillow. Nobody has one before Pillow is imported, so it is not imported here."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(img, pillow.Image)


def is_tensor_image(img: Any) -> bool:
    return isinstance(img, Tensor)


def is_numpy_image(img: Any) -> bool:
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def refuse(function: str, img: Any) -> ArgumentTypeError:
    """The error for what is no image."""
    found = f"an array with {img.ndim} axes" if isinstance(img, np.ndarray) else f"of type {type(img).__name__}"
    return ArgumentTypeError(f"[{function}] the image is {found}. Pass an image of Pillow, an array [height, width] or "
                             f"[height, width, channels], or a tensor [channels, height, width].")


def size_of(function: str, img: Any) -> tuple[int, int]:
    """Width and height."""
    if is_pil_image(img):
        return img.size
    if is_numpy_image(img):
        return img.shape[1], img.shape[0]
    if is_tensor_image(img):
        if img.ndim not in (3, 4):
            raise ArgumentValueError(f"[{function}] the image is a tensor with {img.ndim} axes. It must be "
                                     f"[channels, height, width] or [batch, channels, height, width].")
        return img.shape[-1], img.shape[-2]
    raise refuse(function, img)


def checked_size(function: str, size: Any) -> Size:
    """A number, or two of them."""
    if isinstance(size, numbers.Integral):
        return int(size)
    if isinstance(size, Iterable) and not isinstance(size, (str, dict)) and len(pair := list(size)) == 2:
        return pair
    raise ArgumentTypeError(f"[{function}] size is {size!r}; it must be a number, the new length of the shorter side, or a "
                            f"pair (height, width).")


def shorter_side_to(size: int, width: int, height: int) -> tuple[int, int] | None:
    """The new height and width if the shorter side gets this length; None if it has it already."""
    if (width <= height and width == size) or (height <= width and height == size):
        return None
    if width < height:
        return int(size * height / width), size
    return size, int(size * width / height)


def check_new_size(function: str, height: int, width: int) -> None:
    if height <= 0 or width <= 0:
        raise ArgumentValueError(f"[{function}] the new size would be {height} x {width}. Both sides must be positive.")


def sides_of(function: str, padding: Any, fill: Any, padding_mode: Any) -> tuple[int, int, int, int]:
    """The padding on the left, at the top, on the right and at the bottom."""
    if not isinstance(padding, (numbers.Number, list, tuple)):
        raise ArgumentTypeError(f"[{function}] padding is {padding!r}; it must be a number or a sequence of two or four.")
    if not isinstance(fill, (numbers.Number, str, list, tuple)):
        raise ArgumentTypeError(f"[{function}] fill is {fill!r}; it must be a number, or a sequence with one for each channel.")
    if not isinstance(padding_mode, str):
        raise ArgumentTypeError(f"[{function}] padding_mode is {padding_mode!r}; it must be one of {', '.join(PADDING_MODES)}.")
    if padding_mode not in PADDING_MODES:
        raise ArgumentValueError(f"[{function}] padding_mode is {padding_mode!r}; it can be {', '.join(PADDING_MODES)}.")
    if not isinstance(padding, (list, tuple)):
        return (int(padding),) * 4  # type: ignore[call-overload]
    if len(padding) == 2:
        return padding[0], padding[1], padding[0], padding[1]
    if len(padding) == 4:
        return padding[0], padding[1], padding[2], padding[3]
    raise ArgumentValueError(f"[{function}] padding has {len(padding)} elements; it must have two (left and right, top and "
                             f"bottom) or four (left, top, right, bottom).")


def check_hue(function: str, hue_factor: float) -> None:
    if not -0.5 <= hue_factor <= 0.5:
        raise ArgumentValueError(f"[{function}] hue_factor is {hue_factor}; it must be in [-0.5, 0.5].")


def check_gray_channels(function: str, num_output_channels: int) -> None:
    if num_output_channels not in (1, 3):
        raise ArgumentValueError(f"[{function}] num_output_channels is {num_output_channels}; it can be 1 or 3.")


def check_data_format(function: str, data_format: Any) -> None:
    if data_format not in ("CHW", "HWC"):
        raise ArgumentValueError(f"[{function}] data_format is {data_format!r}; it can be 'CHW' or 'HWC'.")


def middle(size: Any, height: int, width: int) -> tuple[int, int, int, int]:
    """Of a window of this size in the middle of an image: top, left, height and width."""
    wanted = (int(size), int(size)) if isinstance(size, (int, float, np.number)) else size
    new_height, new_width = wanted
    return round((height - new_height) / 2.0), round((width - new_width) / 2.0), new_height, new_width
