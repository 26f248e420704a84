"""Images of Pillow whose files are decoded when their pixels are needed, and only as far as they are.

A chain such as ``RandomResizedCrop``, ``RandomHorizontalFlip``, ``ToTensor`` then never leaves native code: the crop is
decoded and resized in one step, without the rest of the image. Any other use of the image goes to Pillow, which sees an ordinary
image in colour."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from PIL import Image

from oar._C import image_decode, image_decode_resized, image_flip, image_info, image_resample

__all__ = ["FileImage", "open_in_colour"]

class FileImage(Image.Image):
    """An image in colour: bytes of a file and a window of it, or pixels. Once Pillow asks for it, it is Pillow's."""

    _file: bytes | None = None
    _path = ""
    _part: tuple[int, int, int, int] = (0, 0, 0, 0)
    _array: np.ndarray | None = None

    def __init__(self, height: int, width: int, path: str) -> None:
        super().__init__()
        self._mode = "RGB"
        self._size = (width, height)
        self._path = path

    @classmethod
    def of_file(cls, file: bytes, part: tuple[int, int, int, int], path: str) -> FileImage:
        image = cls(part[2], part[3], path)
        image._file, image._part = file, part
        return image

    @classmethod
    def of_pixels(cls, pixels: np.ndarray, path: str) -> FileImage:
        image = cls(pixels.shape[0], pixels.shape[1], path)
        pixels.flags.writeable = False
        image._array = pixels
        return image

    @property
    def pending(self) -> bool:
        """Whether Pillow has not seen the pixels yet."""
        return self._file is not None or self._array is not None

    def pixels(self) -> np.ndarray:
        """The pixels [height, width, 3] of an image that is pending. Read only."""
        if self._array is None:
            assert self._file is not None
            try:
                self._array = image_decode(self._file, "rgb", self._part)
            except ValueError as error:
                raise unreadable(self._path, error) from None
            self._array.flags.writeable = False
            self._file = None
        return self._array

    def window(self, top: int, left: int, height: int, width: int) -> FileImage:
        """A part of it, which must be inside."""
        if self._file is not None:
            part = (self._part[0] + top, self._part[1] + left, height, width)
            return FileImage.of_file(self._file, part, self._path)
        return FileImage.of_pixels(self.pixels()[top:top + height, left:left + width].copy(), self._path)

    def resized(self, height: int, width: int, interpolation: str) -> FileImage:
        if self._file is None:
            return FileImage.of_pixels(image_resample(self.pixels(), height, width, interpolation), self._path)
        try:
            pixels = image_decode_resized(self._file, self._part, height, width, interpolation)
        except ValueError as error:
            raise unreadable(self._path, error) from None
        return FileImage.of_pixels(pixels, self._path)

    def flipped(self, horizontally: bool) -> FileImage:
        return FileImage.of_pixels(image_flip(self.pixels(), horizontally), self._path)

    def load(self) -> Any:
        """What Pillow calls before it uses the pixels."""
        if self.pending:
            pixels = self.pixels()
            self._array = None
            self.im = Image.frombuffer("RGB", self._size, pixels, "raw", "RGB", 0, 1).im
        return super().load()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self.pending:
            return super().__array_interface__
        pixels = self.pixels()
        return {"shape": pixels.shape, "typestr": "|u1", "version": 3, "data": memoryview(pixels)}


def unreadable(path: str, error: Exception) -> OSError:
    """The error for a file that cannot be decoded. It is Pillow's class."""
    text = str(error)
    return OSError(f"[image_load] {path or 'the image'} cannot be read: {text} Replace or remove the file.")


def open_in_colour(path: str | os.PathLike[str]) -> Image.Image:
    """Opens a file as an image in colour. JPEG and PNG files are decoded later, by native code."""
    name = os.fspath(path)
    with open(name, "rb") as file:
        content = file.read()
    try:
        info = image_info(content)
    except NotImplementedError:  # without the libraries
        info = None
    except ValueError as error:
        raise unreadable(name, error) from None
    if info is not None:
        _, height, width, _, readable = info
        if readable:
            return FileImage.of_file(content, (0, 0, height, width), name)
    with Image.open(name) as image:
        return image.convert("RGB")
