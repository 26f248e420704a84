"""Transforms that change colours, most of them by random factors from ``random``."""

from __future__ import annotations

import numbers
import random
from collections.abc import Sequence
from typing import Any

from oar._C import ArgumentTypeError, ArgumentValueError
from oar.vision.transforms import functional as F
from oar.vision.transforms._base import BaseTransform, Compose

__all__ = ["BrightnessTransform", "ColorJitter", "ContrastTransform", "Grayscale", "HueTransform", "SaturationTransform"]


def _check_input(
    value: Any, name: str, center: float = 1, bound: tuple[float, float] = (0, float("inf")), clip_first_on_zero: bool = True,
) -> list[float] | None:  # fmt: skip
    """The range of a factor; None if it is always the one that changes nothing."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ArgumentValueError(f"[{name}] value is {value}; one number must not be negative.")
        least = center - value  # type: ignore[operator]
        found = [max(least, 0) if clip_first_on_zero else least, center + value]  # type: ignore[operator]
    elif isinstance(value, (tuple, list)) and len(value) == 2:
        found = list(value)
    else:
        raise ArgumentTypeError(f"[{name}] value is {value!r}; it must be a number or a pair of numbers.")
    if not bound[0] <= found[0] <= found[1] <= bound[1]:
        raise ArgumentValueError(f"[{name}] value is {value}, a factor from {found[0]} to {found[1]}; factors are in "
                                 f"[{bound[0]}, {bound[1]}], the smaller one first.")
    return None if found[0] == found[1] == center else found


class BrightnessTransform(BaseTransform):
    """Makes an image brighter or darker, by a random factor.

    Args:
        value: the factor is between max(0, 1 - value) and 1 + value; or a pair, its range.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import BrightnessTransform
        >>> BrightnessTransform((2, 2))(np.array([[10, 200]], 'uint8')).tolist()
        [[20, 255]]
    """

    def __init__(self, value: float | Sequence[float], keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _check_input(value, "BrightnessTransform")

    def _apply_image(self, img: Any) -> Any:
        return img if self.value is None else F.adjust_brightness(img, random.uniform(*self.value))


class ContrastTransform(BaseTransform):
    """Makes differences larger or smaller, by a random factor.

    Args:
        value: the factor is between max(0, 1 - value) and 1 + value; or a pair, its range.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import ContrastTransform
        >>> ContrastTransform((2, 2))(np.array([[64, 84]], 'uint8')).tolist()
        [[54, 94]]
    """

    def __init__(self, value: float | Sequence[float], keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _check_input(value, "ContrastTransform")

    def _apply_image(self, img: Any) -> Any:
        return img if self.value is None else F.adjust_contrast(img, random.uniform(*self.value))


class SaturationTransform(BaseTransform):
    """Makes colours stronger or weaker, by a random factor.

    Args:
        value: the factor is between max(0, 1 - value) and 1 + value; or a pair, its range.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import SaturationTransform
        >>> SaturationTransform(0.4)(oar.ones([3, 4, 5])).shape
        [3, 4, 5]
    """

    def __init__(self, value: float | Sequence[float], keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _check_input(value, "SaturationTransform")

    def _apply_image(self, img: Any) -> Any:
        return img if self.value is None else F.adjust_saturation(img, random.uniform(*self.value))


class HueTransform(BaseTransform):
    """Turns colours around the circle of colours, by a random part of it.

    Args:
        value: the part is between -value and value; or a pair, its range. At most 0.5 either way.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import HueTransform
        >>> red = oar.to_tensor([1.0, 0.0, 0.0]).reshape([3, 1, 1])
        >>> HueTransform((0.5, 0.5))(red).flatten().tolist()
        [0.0, 1.0, 1.0]
    """

    def __init__(self, value: float | Sequence[float], keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.value = _check_input(value, "HueTransform", center=0, bound=(-0.5, 0.5), clip_first_on_zero=False)

    def _apply_image(self, img: Any) -> Any:
        return img if self.value is None else F.adjust_hue(img, random.uniform(*self.value))


class ColorJitter(BaseTransform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness: as ``value`` of ``BrightnessTransform``; None leaves it out.
        contrast: as ``value`` of ``ContrastTransform``.
        saturation: as ``value`` of ``SaturationTransform``.
        hue: as ``value`` of ``HueTransform``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import ColorJitter
        >>> ColorJitter(0.4, 0.4, 0.4, 0.4)(np.zeros((4, 5, 3), 'uint8')).shape
        (4, 5, 3)
    """

    def __init__(
        self, brightness: float | Sequence[float] = 0, contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0, hue: float | Sequence[float] = 0, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue

    def _get_param(self, brightness: Any, contrast: Any, saturation: Any, hue: Any) -> Compose:
        kinds = [(BrightnessTransform, brightness), (ContrastTransform, contrast), (SaturationTransform, saturation),
                 (HueTransform, hue)]
        transforms = [kind(value, self.keys) for kind, value in kinds if value is not None]
        random.shuffle(transforms)
        return Compose(transforms)

    def _apply_image(self, img: Any) -> Any:
        return self._get_param(self.brightness, self.contrast, self.saturation, self.hue)(img)


class Grayscale(BaseTransform):
    """Drops the colours of an image.

    Args:
        num_output_channels: 1, or 3 for three equal channels.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import Grayscale
        >>> Grayscale()(np.zeros((4, 5, 3), 'uint8')).shape
        (4, 5, 1)
    """

    def __init__(self, num_output_channels: int = 1, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img: Any) -> Any:
        return F.to_grayscale(img, self.num_output_channels)
