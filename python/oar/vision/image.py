"""Images from files, as Pillow or OpenCV would read them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from oar._C import ArgumentValueError
from oar._creation import to_tensor
from oar.vision._files import decoded

__all__ = ["get_image_backend", "image_load", "set_image_backend"]

_BACKENDS = ("pil", "cv2", "tensor")
_image_backend = "pil"


def _checked(function: str, backend: str) -> str:
    if backend not in _BACKENDS:
        raise ArgumentValueError(f"[{function}] backend is {backend!r}; it can be 'pil', 'cv2' or 'tensor'.")
    return backend


def set_image_backend(backend: str) -> None:
    """Chooses what images are read as.

    Args:
        backend: 'pil' (images of Pillow), 'cv2' (arrays, as OpenCV reads them; OpenCV is not needed) or 'tensor'.

    Examples:
        >>> import oar
        >>> oar.vision.set_image_backend('pil')
        >>> oar.vision.get_image_backend()
        'pil'
    """
    global _image_backend
    _image_backend = _checked("set_image_backend", backend)


def get_image_backend() -> str:
    """What images are read as.

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
    if chosen == "pil":
        return _by_pillow(path)
    with open(path, "rb") as file:
        content = file.read()
    if chosen == "tensor":
        pixels = decoded("image_load", content, "unchanged", os.fspath(path))
        return to_tensor(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    return upright(decoded("image_load", content, "rgb", os.fspath(path)), content)[:, :, ::-1].copy()


def _by_pillow(path: str | os.PathLike[str]) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("[image_load] the backend 'pil' needs Pillow.\n"
                          "hint: pip install pillow, or backend='cv2' or 'tensor'") from None
    return Image.open(path)


def upright(pixels: np.ndarray, file: bytes) -> np.ndarray:
    """Turns an image the way its camera was held, if the file says so. OpenCV does this, Pillow does not."""
    turned = _ORIENTATIONS.get(_orientation(file))
    return pixels if turned is None else np.ascontiguousarray(turned(pixels))


# The eight values of the tag Orientation: 1 is upright.
_ORIENTATIONS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.swapaxes(0, 1),
    6: lambda p: p.swapaxes(0, 1)[:, ::-1],
    7: lambda p: p.swapaxes(0, 1)[::-1, ::-1],
    8: lambda p: p.swapaxes(0, 1)[::-1],
}
_ORIENTATION_TAG = 0x0112


def _orientation(file: bytes) -> int:
    """The tag Orientation in the Exif part of a JPEG file, else 1. Any bytes are accepted."""
    at = 2
    while file[:2] == b"\xff\xd8" and at + 4 <= len(file) and file[at] == 0xFF:
        marker, length = file[at + 1], int.from_bytes(file[at + 2:at + 4], "big")
        if marker == 0xE1 and file[at + 4:at + 10] == b"Exif\0\0":
            return _orientation_in_exif(file[at + 10:at + 2 + length])
        if marker == 0xDA or length < 2:  # the pixels begin, or it is no marker
            break
        at += 2 + length
    return 1


def _orientation_in_exif(exif: bytes) -> int:
    order: Any = {b"II": "little", b"MM": "big"}.get(exif[:2])
    if order is None or len(exif) < 8:
        return 1
    start = int.from_bytes(exif[4:8], order)
    count = int.from_bytes(exif[start:start + 2], order)
    for i in range(count):
        entry = exif[start + 2 + 12 * i:start + 14 + 12 * i]
        if len(entry) < 12:
            break
        if int.from_bytes(entry[:2], order) == _ORIENTATION_TAG:
            return int.from_bytes(entry[8:10], order)
    return 1
