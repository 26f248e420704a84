"""Transforms that move pixels. Random ones draw from ``random`` and ``numpy.random``, in the order that Paddle does."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oar._C import ArgumentTypeError, ArgumentValueError
from oar._framework import in_dynamic_mode
from oar.vision.transforms import _checks
from oar.vision.transforms import functional as F
from oar.vision.transforms._base import BaseTransform

if TYPE_CHECKING:
    from oar.vision.transforms._checks import Fill, Padding, Size

__all__ = ["CenterCrop", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomResizedCrop", "RandomVerticalFlip", "Resize",
           "Transpose"]


def in_program(img: Any) -> bool:
    """Whether the image is a variable of a program, so that random numbers must be drawn by ops."""
    return _checks.is_tensor_image(img) and not in_dynamic_mode()


def pair_of(size: Any) -> Any:
    return (int(size), int(size)) if isinstance(size, (int, float, np.number)) else size


def check_probability(name: str, prob: float) -> None:
    if not 0 <= prob <= 1:
        raise ArgumentValueError(f"[{name}] prob is {prob}; a probability must be between 0 and 1.")


class Resize(BaseTransform):
    """Changes the size of an image.

    Args:
        size: the new (height, width); or a number, which the shorter side becomes, with the same shape.
        interpolation: as for ``resize``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import Resize
        >>> Resize(224)(np.zeros((256, 300, 3), 'uint8')).shape
        (224, 262, 3)
    """

    def __init__(self, size: Size, interpolation: str = "bilinear", keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        if not (isinstance(size, int) or (isinstance(size, Iterable) and len(size) == 2)):  # type: ignore[arg-type]
            raise ArgumentValueError(f"[Resize] size is {size!r}; it must be a number or a pair (height, width).")
        self.size = size
        self.interpolation = interpolation

    def _apply_image(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation)


class RandomResizedCrop(BaseTransform):
    """A part of an image of random place, size and shape, resized.

    Args:
        size: the new (height, width), or a number for both.
        scale: the range of the part's area, in parts of the image's.
        ratio: the range of the part's width, in parts of its height.
        interpolation: as for ``resize``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomResizedCrop
        >>> RandomResizedCrop(224)(np.zeros((256, 300, 3), 'uint8')).shape
        (224, 224, 3)
    """

    def __init__(
        self, size: Size, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3.0 / 4, 4.0 / 3),
        interpolation: str = "bilinear", keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.size = (size, size) if isinstance(size, int) else size
        for name, values in (("scale", scale), ("ratio", ratio)):
            if not values[0] <= values[1]:
                raise ArgumentValueError(f"[RandomResizedCrop] {name} is {values}; {name} should be of kind (min, max).")
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation

    def _dynamic_get_param(self, image: Any, attempts: int = 10) -> tuple[int, int, int, int]:
        width, height = _checks.size_of("RandomResizedCrop", image)
        least, most = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(attempts):
            area = np.random.uniform(self.scale[0], self.scale[1]) * (height * width)
            aspect = math.exp(np.random.uniform(least, most))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                top = random.randint(0, height - h)
                return top, random.randint(0, width - w), h, w
        w, h = width, height
        if width / height < min(self.ratio):
            h = round(width / min(self.ratio))
        elif width / height > max(self.ratio):
            w = round(height * max(self.ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def _apply_image(self, img: Any) -> Any:
        if in_program(img):
            from oar.vision.transforms import _in_program

            return _in_program.resized_crop(img, self.size, self.scale, self.ratio, self.interpolation)
        return F.resize(F.crop(img, *self._dynamic_get_param(img)), self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """The part in the middle of an image.

    Args:
        size: (height, width), or a number for both.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import CenterCrop
        >>> CenterCrop(224)(np.zeros((256, 300, 3), 'uint8')).shape
        (224, 224, 3)
    """

    def __init__(self, size: Size, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.size = pair_of(size)

    def _apply_image(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class RandomHorizontalFlip(BaseTransform):
    """Swaps left and right, at random.

    Args:
        prob: the probability.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomHorizontalFlip
        >>> RandomHorizontalFlip(1.0)(np.array([[1, 2, 3]], 'uint8'))
        array([[3, 2, 1]], dtype=uint8)
    """

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        check_probability("RandomHorizontalFlip", prob)
        self.prob = prob

    def _apply_image(self, img: Any) -> Any:
        if in_program(img):
            from oar.vision.transforms import _in_program

            return _in_program.flipped(img, self.prob, -1)
        return F.hflip(img) if random.random() < self.prob else img


class RandomVerticalFlip(BaseTransform):
    """Swaps top and bottom, at random.

    Args:
        prob: the probability.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomVerticalFlip
        >>> RandomVerticalFlip(1.0)(np.array([[1], [2]], 'uint8')).tolist()
        [[2], [1]]
    """

    def __init__(self, prob: float = 0.5, keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        check_probability("RandomVerticalFlip", prob)
        self.prob = prob

    def _apply_image(self, img: Any) -> Any:
        if in_program(img):
            from oar.vision.transforms import _in_program

            return _in_program.flipped(img, self.prob, -2)
        return F.vflip(img) if random.random() < self.prob else img


class Transpose(BaseTransform):
    """Changes the order of axes. An image of Pillow becomes an array.

    Args:
        order: the axes in their new order.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import Transpose
        >>> Transpose()(np.zeros((4, 5, 3), 'uint8')).shape
        (3, 4, 5)
    """

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img: Any) -> Any:
        if _checks.is_tensor_image(img):
            return img.transpose(list(self.order))
        pixels = np.asarray(img)
        return (pixels if pixels.ndim != 2 else pixels[..., None]).transpose(self.order)


class RandomCrop(BaseTransform):
    """A part of an image of random place.

    Args:
        size: the (height, width) of the part, or a number for both.
        padding: a border that is added first, as for ``pad``.
        pad_if_needed: whether an image smaller than the part gets a border, too.
        fill: as for ``pad``.
        padding_mode: as for ``pad``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import RandomCrop
        >>> RandomCrop(32, padding=4)(np.zeros((32, 32, 3), 'uint8')).shape
        (32, 32, 3)
    """

    def __init__(
        self, size: Size, padding: Padding | None = None, pad_if_needed: bool = False, fill: Fill = 0,
        padding_mode: str = "constant", keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.size = pair_of(size)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def _get_param(self, img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        width, height = _checks.size_of("RandomCrop", img)
        new_height, new_width = output_size
        if (width, height) == (new_width, new_height):
            return 0, 0, height, width
        if new_height > height or new_width > width:
            raise ArgumentValueError(f"[RandomCrop] size is {new_height} x {new_width}, but the image has {height} x {width} "
                                     f"pixels. Set pad_if_needed=True, or resize the image first.")
        top = random.randint(0, height - new_height)
        return top, random.randint(0, width - new_width), new_height, new_width

    def _apply_image(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        width, height = _checks.size_of("RandomCrop", img)
        if self.pad_if_needed and width < self.size[1]:
            img = F.pad(img, (self.size[1] - width, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and height < self.size[0]:
            img = F.pad(img, (0, self.size[0] - height), self.fill, self.padding_mode)
        if in_program(img):
            from oar.vision.transforms import _in_program

            return _in_program.random_crop(img, *self.size)
        return F.crop(img, *self._get_param(img, self.size))


class Pad(BaseTransform):
    """Adds a border to an image.

    Args:
        padding: as for ``pad``.
        fill: as for ``pad``.
        padding_mode: as for ``pad``.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import Pad
        >>> Pad(2)(np.zeros((4, 5, 3), 'uint8')).shape
        (8, 9, 3)
    """

    def __init__(
        self, padding: Padding, fill: Fill = 0, padding_mode: str = "constant", keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        _checks.sides_of("Pad", padding, fill, padding_mode)
        super().__init__(keys)
        self.padding = tuple(padding) if isinstance(padding, list) else padding
        self.fill = tuple(fill) if isinstance(fill, list) else fill
        self.padding_mode = padding_mode

    def _apply_image(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


def check_sequence(name: str, argument: str, value: Any, lengths: tuple[int, ...]) -> None:
    wanted = " or ".join(map(str, lengths))
    if not isinstance(value, Sequence):
        raise ArgumentTypeError(f"[{name}] {argument} is {value!r}; it must be a sequence of length {wanted}.")
    if len(value) not in lengths:
        raise ArgumentValueError(f"[{name}] {argument} has {len(value)} elements; it must be a sequence of length {wanted}.")
