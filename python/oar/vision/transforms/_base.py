"""What all transforms have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar._C import ArgumentValueError
from oar.vision import _pixels
from oar.vision.transforms import _checks
from oar.vision.transforms import functional as F

__all__ = ["BaseTransform", "Compose", "Normalize", "ToTensor"]


class BaseTransform:
    """A transform of images and of what belongs to them.

    A subclass defines ``_apply_image``, and ``_apply_boxes``, ``_apply_mask`` or ``_apply_coords`` if it has a use for them.
    ``_get_params`` is called first, with all inputs; what it returns is ``self.params`` then.

    Args:
        keys: what the inputs are, one by one: 'image', 'coords', 'boxes' or 'mask'. ``('image',)`` unless given. Inputs beyond
            them are returned as they are.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import BaseTransform
        >>> class Negative(BaseTransform):
        ...     def _apply_image(self, image):
        ...         return 255 - image
        >>> Negative()(np.array([[0, 255]], 'uint8'))
        array([[255,   0]], dtype=uint8)
    """

    keys: Sequence[str]
    params: Any

    def __init__(self, keys: Sequence[str] | None = None) -> None:
        if keys is None:
            keys = ("image",)
        elif not isinstance(keys, Sequence):
            raise ArgumentValueError(f"[{type(self).__name__}] keys is {keys!r}; it must be a sequence such as ('image', 'mask').")
        for key in keys:
            if self._get_apply(key) is None:
                raise NotImplementedError(f"[{type(self).__name__}] keys has {key!r}, but there is no method _apply_{key}. A key "
                                          f"can be 'image', 'coords', 'boxes' or 'mask'.")
        self.keys = keys
        self.params = None

    def __call__(self, inputs: Any) -> Any:
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        self.params = self._get_params(given)
        outputs = []
        for key, value in zip(self.keys, given):
            apply = self._get_apply(key)
            outputs.append(value if apply is None else apply(value))
        outputs.extend(given[len(self.keys):])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _get_params(self, inputs: tuple[Any, ...]) -> Any:
        return None

    def _get_apply(self, key: str) -> Any:
        return getattr(self, f"_apply_{key}", None)

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method _apply_image.")

    def _apply_boxes(self, boxes: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method _apply_boxes.")

    def _apply_mask(self, mask: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method _apply_mask.")

    def _apply_coords(self, coords: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method _apply_coords.")


class ToTensor(BaseTransform):
    """Makes a tensor of an image. Bytes become numbers between 0 and 1, of float32.

    Args:
        data_format: 'CHW' for [channels, height, width], 'HWC' for [height, width, channels].
        keys: as for ``BaseTransform``.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import ToTensor
        >>> ToTensor()(np.zeros((4, 5, 3), 'uint8')).shape
        [3, 4, 5]
    """

    def __init__(self, data_format: str = "CHW", keys: Sequence[str] | None = None) -> None:
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img: Any) -> Any:
        return F.to_tensor(img, self.data_format)


class Normalize(BaseTransform):
    """Subtracts a mean and divides by a deviation, channel by channel.

    Args:
        mean: one number for each channel, or one for three.
        std: one number for each channel, or one for three.
        data_format: where the channels are, 'CHW' or 'HWC'.
        to_rgb: whether the last axis of an array is reversed first.
        keys: as for ``BaseTransform``.

    Examples:
        >>> import oar
        >>> from oar.vision.transforms import Normalize
        >>> Normalize(mean=0.5, std=0.25)(oar.ones([3, 1, 1])).flatten().tolist()
        [2.0, 2.0, 2.0]
    """

    def __init__(
        self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0, data_format: str = "CHW",
        to_rgb: bool = False, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(keys)
        self.mean = [mean] * 3 if isinstance(mean, (int, float)) else mean
        self.std = [std] * 3 if isinstance(std, (int, float)) else std
        self.data_format = data_format
        self.to_rgb = to_rgb

    def _apply_image(self, img: Any) -> Any:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


def _in_one_step(data: Any, first: Any, second: Any) -> Any:
    """What ``ToTensor`` and ``Normalize`` make of bytes, in one pass over them; None if they are something else."""
    if type(first) is not ToTensor or type(second) is not Normalize or isinstance(data, tuple):
        return None
    if first.data_format != second.data_format or first.data_format not in ("CHW", "HWC"):
        return None
    pixels = _bytes_of(data)
    if pixels is None or not len(second.mean) == len(second.std) == pixels.shape[2]:
        return None
    return _pixels.normalized(pixels, second.mean, second.std, first.data_format)


def _bytes_of(data: Any) -> Any:
    if _checks.is_numpy_image(data):
        return (data if data.ndim == 3 else data[:, :, None]) if data.dtype == "uint8" else None
    if _checks.is_pil_image(data) and data.mode in ("L", "RGB", "RGBA"):
        import numpy as np

        return np.asarray(data).reshape(data.height, data.width, -1)
    return None


class Compose:
    """Runs transforms one after the other.

    Args:
        transforms: the transforms, a list.

    Examples:
        >>> import numpy as np
        >>> from oar.vision.transforms import CenterCrop, Compose, ToTensor
        >>> Compose([CenterCrop(4), ToTensor()])(np.zeros((8, 8, 3), 'uint8')).shape
        [3, 4, 4]
    """

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    def __call__(self, data: Any) -> Any:
        steps = iter(range(len(self.transforms)))
        for i in steps:
            transform = self.transforms[i]
            try:
                if i + 1 < len(self.transforms):
                    both = _in_one_step(data, transform, self.transforms[i + 1])
                    if both is not None:
                        data = both
                        next(steps)
                        continue
                data = transform(data)
            except Exception as error:
                _note(error, f"This was in transform {i} of a Compose, {transform!r}.")
                raise
        return data

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{type(self).__name__}({lines}\n)"


def _note(error: Exception, text: str) -> None:
    if hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(text)
