"""Random rotations, shears, perspectives and erased parts."""

from __future__ import annotations

import numbers
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import oar
from oar._C import ArgumentTypeError, ArgumentValueError
from oar.vision.transforms import _checks
from oar.vision.transforms import functional as F
from oar.vision.transforms._base import BaseTransform
from oar.vision.transforms._geometry import check_probability, check_sequence, in_program

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill

__all__ = ["RandomAffine", "RandomErasing", "RandomPerspective", "RandomRotation"]

_SAMPLED = ("nearest", "bilinear", "bicubic")


def _check_interpolation(name: str, interpolation: str) -> None:
    if interpolation not in _SAMPLED:
        raise ArgumentValueError(f"[{name}] interpolation is {interpolation!r}; it can be {', '.join(_SAMPLED)}.")


def _angles(name: str, argument: str, value: Any, lengths: tuple[int, ...] = (2,)) -> list[float]:
    """A range of angles: one number stands for it and its negative."""
    if isinstance(value, numbers.Number):
        if value < 0:  # type: ignore[operator]
            raise ArgumentValueError(f"[{name}] {argument} is {value}; one number must not be negative.")
        return [-float(value), float(value)]  # type: ignore[arg-type]
    check_sequence(name, argument, value, lengths)
    return [float(angle) for angle in value]


class RandomAffine(BaseTransform):
    """Rotates, shifts, scales and shears an image, at random.

    Args:
        degrees: the range of the angle; one number stands for (-degrees, degrees).
        translate: the most that it is shifted along x and y, in parts of the width and the height.
        scale: the range of the factor of the size.
        shear: the range of the shear in degrees along x, as for degrees; four numbers for x and y.
        interpolation: 'nearest', 'bilinear' or 'bicubic'.
        fill: the value of pixels outside of the image, or one for each channel.
        center: the center (x, y); the middle of the image unless given.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomAffine
        >>> RandomAffine(45, translate=[0.1, 0.1], shear=10)(np.zeros((4, 5, 3), 'uint8')).shape
        (4, 5, 3)
    """

    def __init__(
        self, degrees: float | Sequence[float], translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None, shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest", fill: Fill | None = 0, center: Sequence[float] | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.degrees = _angles("RandomAffine", "degrees", degrees)
        super().__init__(keys)
        _check_interpolation("RandomAffine", interpolation)
        self.interpolation = interpolation
        if translate is not None:
            check_sequence("RandomAffine", "translate", translate, (2,))
            if not all(0.0 <= part <= 1.0 for part in translate):
                raise ArgumentValueError(f"[RandomAffine] translate is {translate}; its parts must be between 0 and 1.")
        self.translate = translate
        if scale is not None:
            check_sequence("RandomAffine", "scale", scale, (2,))
            if not all(factor > 0 for factor in scale):
                raise ArgumentValueError(f"[RandomAffine] scale is {scale}; its factors must be positive.")
        self.scale = scale
        self.shear = None if shear is None else _angles("RandomAffine", "shear", shear, (2, 4))
        if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
            raise ArgumentTypeError(f"[RandomAffine] fill is {fill!r}; it must be a number or a sequence of numbers.")
        self.fill = 0 if fill is None else fill
        if center is not None:
            check_sequence("RandomAffine", "center", center, (2,))
        self.center = center

    def _get_param(
        self, img_size: Sequence[int], degrees: Sequence[float], translate: Sequence[float] | None = None,
        scale_ranges: Sequence[float] | None = None, shears: Sequence[float] | None = None,
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:  # fmt: skip
        angle = random.uniform(degrees[0], degrees[1])
        shift = (0, 0)
        if translate is not None:
            most_x, most_y = float(translate[0] * img_size[0]), float(translate[1] * img_size[1])
            x = int(random.uniform(-most_x, most_x))
            shift = (x, int(random.uniform(-most_y, most_y)))
        scale = 1.0 if scale_ranges is None else random.uniform(scale_ranges[0], scale_ranges[1])
        shear_x = 0.0 if shears is None else random.uniform(shears[0], shears[1])
        shear_y = random.uniform(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, shift, scale, (shear_x, shear_y)

    def _apply_image(self, img: Any) -> Any:
        size = _checks.size_of("RandomAffine", img)
        drawn = self._get_param(size, self.degrees, self.translate, self.scale, self.shear)
        return F.affine(img, *drawn, interpolation=self.interpolation, fill=self.fill, center=self.center)


class RandomRotation(BaseTransform):
    """Rotates an image by a random angle.

    Args:
        degrees: the range of the angle; one number stands for (-degrees, degrees).
        interpolation: as for ``rotate``.
        expand: as for ``rotate``.
        center: as for ``rotate``.
        fill: as for ``rotate``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomRotation
        >>> RandomRotation(90)(np.zeros((4, 5, 3), 'uint8')).shape
        (4, 5, 3)
    """

    def __init__(
        self, degrees: float | Sequence[float], interpolation: str = "nearest", expand: bool = False,
        center: Sequence[float] | None = None, fill: Fill = 0, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.degrees: Sequence[float] = _angles("RandomRotation", "degrees", degrees)
        super().__init__(keys)
        self.interpolation = interpolation
        self.expand = expand
        self.center = center
        self.fill = fill

    def _get_param(self, degrees: Sequence[float]) -> float:
        return random.uniform(degrees[0], degrees[1])

    def _apply_image(self, img: Any) -> Any:
        if in_program(img):
            from oar.vision.transforms import _in_program

            angle: Any = _in_program.random_angle(self.degrees)
        else:
            angle = self._get_param(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


class RandomPerspective(BaseTransform):
    """Moves the corners of an image, at random.

    Args:
        prob: the probability.
        distortion_scale: the most that a corner moves, in parts of half the width and height.
        interpolation: 'nearest', 'bilinear' or 'bicubic'.
        fill: the value of pixels outside of the image, or one for each channel.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomPerspective
        >>> RandomPerspective(prob=1.0)(np.zeros((40, 50, 3), 'uint8')).shape
        (40, 50, 3)
    """

    def __init__(
        self, prob: float = 0.5, distortion_scale: float = 0.5, interpolation: str = "nearest", fill: Fill = 0,
        keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        check_probability("RandomPerspective", prob)
        if not 0 <= distortion_scale <= 1:
            raise ArgumentValueError(f"[RandomPerspective] distortion_scale is {distortion_scale}; it must be between 0 and 1.")
        _check_interpolation("RandomPerspective", interpolation)
        if not isinstance(fill, (numbers.Number, str, list, tuple)):
            raise ArgumentValueError(f"[RandomPerspective] fill is {fill!r}; it must be a number or a sequence of numbers.")
        self.prob = prob
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill

    def get_params(self, width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """Draws where the corners go.

        Args:
            width: of the image.
            height: of the image.
            distortion_scale: the most that a corner moves, in parts of half the width and height.

        Returns:
            the four corners [x, y] from the top left on, clockwise, and their new places.

        Examples:
            >>> from oar.vision.transforms import RandomPerspective
            >>> RandomPerspective().get_params(4, 3, 0.0)[0]
            [[0, 0], [3, 0], [3, 2], [0, 2]]
        """
        most_x, most_y = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))

        def near_start(most: int) -> int:
            return int(random.uniform(0, most + 1))

        def near_end(size: int, most: int) -> int:
            return int(random.uniform(size - most - 1, size))

        moved = [[near_start(most_x), near_start(most_y)], [near_end(width, most_x), near_start(most_y)],
                 [near_end(width, most_x), near_end(height, most_y)], [near_start(most_x), near_end(height, most_y)]]
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], moved

    def _apply_image(self, img: Any) -> Any:
        width, height = _checks.size_of("RandomPerspective", img)
        if random.random() >= self.prob:
            return img
        corners, moved = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, corners, moved, self.interpolation, self.fill)


class RandomErasing(BaseTransform):
    """Replaces a random part of an image.

    Args:
        prob: the probability.
        scale: the range of the part's area, in parts of the image's.
        ratio: the range of the part's height, in parts of its width.
        value: the new value, or three for the channels; 'random' for random numbers.
        inplace: whether an array or a tensor is changed itself.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import RandomErasing
        >>> RandomErasing(prob=1.0, value=0.5)(oar.ones([3, 8, 8])).min().item()
        0.5
    """

    def __init__(
        self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0, inplace: bool = False, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self._check(prob, scale, ratio, value)
        self.prob = prob
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    @staticmethod
    def _check(prob: Any, scale: Any, ratio: Any, value: Any) -> None:
        for name, given in (("scale", scale), ("ratio", ratio)):
            if not isinstance(given, (tuple, list)):
                raise ArgumentValueError(f"[RandomErasing] {name} is {given!r}; {name} should be a tuple or list.")
        if not 0 <= scale[0] <= scale[1] <= 1:
            raise ArgumentValueError(f"[RandomErasing] scale is {scale}; scale should be of kind (min, max) and in range [0, 1].")
        if not 0 <= ratio[0] <= ratio[1]:
            raise ArgumentValueError(f"[RandomErasing] ratio is {ratio}; ratio should be of kind (min, max).")
        if not 0 <= prob <= 1:
            raise ArgumentValueError(f"[RandomErasing] prob is {prob}. The probability should be in range [0, 1].")
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise ArgumentValueError(f"[RandomErasing] value is {value!r}; value should be a number, tuple, list or str.")
        if isinstance(value, str) and value != "random":
            raise ArgumentValueError(f"[RandomErasing] value is {value!r}; value must be 'random' when type is str.")

    def _values(self) -> list[float] | None:
        """The new value of each channel, one for all, or None for random numbers."""
        if isinstance(self.value, str):
            return None
        values = list(self.value) if isinstance(self.value, (tuple, list)) else [self.value]
        if len(values) not in (1, 3):
            raise ArgumentValueError(f"[RandomErasing] value has {len(values)} numbers; it must have one, or one for each of the "
                                     f"three channels.")
        return values  # type: ignore[return-value]

    def _part(
        self, img: Any, values: list[float] | None, height: int, width: int, channels: int,
    ) -> tuple[int, int, int, int, Any] | None:  # fmt: skip
        log_ratio = np.log(self.ratio)
        for _ in range(10):
            area = np.random.uniform(*self.scale) * (height * width)
            aspect = np.exp(np.random.uniform(*log_ratio))
            h, w = round(np.sqrt(area * aspect)), round(np.sqrt(area / aspect))
            if h >= height or w >= width:
                continue
            v = self._new_content(img, values, [h, w, channels])
            top = np.random.randint(0, height - h + 1)
            return top, np.random.randint(0, width - w + 1), h, w, v
        return None

    @staticmethod
    def _new_content(img: Any, values: list[float] | None, shape: list[int]) -> Any:
        if _checks.is_tensor_image(img):
            if values is None:
                return oar.normal(shape=[shape[2], shape[0], shape[1]]).astype(img.dtype)
            return oar.to_tensor(values, dtype=img.dtype)[:, None, None]
        return np.random.normal(size=shape) * 255 if values is None else np.array(values)[None, None, :]

    def _apply_image(self, img: Any) -> Any:
        if in_program(img):
            from oar.vision.transforms import _in_program

            return _in_program.erased(img, self.prob, self.scale, self.ratio, self._values())
        width, height = _checks.size_of("RandomErasing", img)
        if random.random() >= self.prob:
            return img
        channels = img.shape[-3] if _checks.is_tensor_image(img) else len(img.getbands()) if _checks.is_pil_image(img) else (
            img.shape[2] if img.ndim == 3 else 1)
        part = self._part(img, self._values(), height, width, channels)
        return img if part is None else F.erase(img, *part, self.inplace)
