"""Transforms of images: classes for the pipeline of a data set, and functions. They take images of Pillow, arrays and tensors."""

from oar.vision.transforms.functional import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    affine,
    center_crop,
    crop,
    erase,
    hflip,
    normalize,
    pad,
    perspective,
    resize,
    rotate,
    to_grayscale,
    to_tensor,
    vflip,
)
from oar.vision.transforms.transforms import *
from oar.vision.transforms.transforms import __all__ as _classes

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_hue", "affine", "center_crop", "crop", "erase", "hflip", "normalize", "pad",
    "perspective", "resize", "rotate", "to_grayscale", "to_tensor", "vflip",
]  # fmt: skip
__all__ += _classes
