"""The transforms, in one module."""

from __future__ import annotations

from typing import Any

from oar.vision.transforms._base import BaseTransform, Compose, Normalize, ToTensor
from oar.vision.transforms._checks import size_of
from oar.vision.transforms._colour import (  # noqa: F401  (_check_input, as in Paddle)
    BrightnessTransform,
    ColorJitter,
    ContrastTransform,
    Grayscale,
    HueTransform,
    SaturationTransform,
    _check_input,
)
from oar.vision.transforms._geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    Transpose,
)
from oar.vision.transforms._warps import RandomAffine, RandomErasing, RandomPerspective, RandomRotation

__all__ = [
    "BaseTransform", "BrightnessTransform", "CenterCrop", "ColorJitter", "Compose", "ContrastTransform", "Grayscale",
    "HueTransform", "Normalize", "Pad", "RandomAffine", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
    "RandomPerspective", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize", "SaturationTransform",
    "ToTensor", "Transpose",
]  # fmt: skip


def _get_image_size(img: Any) -> tuple[int, int]:
    return size_of("transforms", img)
