"""Images from files, by Pillow or OpenCV."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from oar._C import ArgumentValueError
from oar._creation import to_tensor

__all__ = ["get_image_backend", "image_load", "set_image_backend"]

_BACKENDS = ("pil", "cv2", "tensor")
_image_backend = "pil"


def _checked(function: str, backend: str) -> str:
    if backend not in _BACKENDS:
        raise ArgumentValueError(f"[{function}] backend is {backend!r}; it can be 'pil', 'cv2' or 'tensor'.")
    return backend


def set_image_backend(backend: str) -> None:
    """Chooses the library that reads images.

    Args:
        backend: 'pil' (Pillow), 'cv2' (OpenCV) or 'tensor' (Pillow, and the result is a tensor).

    Examples:
        >>> import oar
        >>> oar.vision.set_image_backend('pil')
        >>> oar.vision.get_image_backend()
        'pil'
    """
    global _image_backend
    _image_backend = _checked("set_image_backend", backend)


def get_image_backend() -> str:
    """The library that reads images.

    Returns:
        'pil', 'cv2' or 'tensor'.

    Examples:
        >>> import oar
        >>> oar.vision.get_image_backend()
        'pil'
    """
    return _image_backend


def image_load(path: str | os.PathLike[str], backend: str | None = None) -> Any:
    """Reads an image.

    Args:
        path: the path of the file.
        backend: as in ``set_image_backend``; None stands for the one that was set there.

    Returns:
        an image of Pillow ('pil'), an array [height, width, channels] of uint8 in the order blue, green, red ('cv2'), or
        a tensor [channels, height, width] of uint8 ('tensor').

    Examples:
        >>> import oar
        >>> oar.vision.image_load('photo.png', backend='gif')
        Traceback (most recent call last):
        ...
        oar.ArgumentValueError: [image_load] backend is 'gif'; it can be 'pil', 'cv2' or 'tensor'.
    """
    chosen = _checked("image_load", _image_backend if backend is None else backend)
    if chosen == "cv2":
        try:
            import cv2
        except ImportError:
            raise ImportError("[image_load] the backend 'cv2' needs OpenCV.\n"
                              "hint: pip install opencv-python, or backend='pil'") from None
        return cv2.imread(os.fspath(path))
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("[image_load] needs Pillow to read images.\nhint: pip install pillow") from None
    image = Image.open(path)
    if chosen == "pil":
        return image
    pixels = np.asarray(image)
    return to_tensor(np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)))
