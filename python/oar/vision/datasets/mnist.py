"""Handwritten digits and pieces of clothing, 28 x 28 pixels."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import oar
from oar.io.dataset import Dataset
from oar.vision.datasets import _common

__all__ = ["MNIST", "FashionMNIST"]

_IMAGES, _LABELS = 2051, 2049  # what the files begin with


def _content(name: str, path: str) -> bytes:
    """The bytes of a file, unpacked if it is packed."""
    with open(path, "rb") as file:
        content = file.read()
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise _common.unreadable(name, path, str(error)) from None


def _array(name: str, path: str, magic: int, axes: int) -> np.ndarray:
    """The array in an IDX file: a number that names the kind, the sizes, the bytes."""
    content = _content(name, path)
    found = int.from_bytes(content[:4], "big")
    if found != magic:
        raise _common.unreadable(name, path, f"it begins with {found}, not {magic}")
    start = 4 * (1 + axes)
    if len(content) < start:
        raise _common.unreadable(name, path, f"it has {len(content)} bytes")
    sizes = struct.unpack_from(f">{axes}I", content, 4)
    count = int(np.prod(sizes, dtype=np.int64))
    if len(content) - start < count:
        raise _common.unreadable(name, path, f"it holds {len(content) - start} of the {count} bytes that it announces")
    return np.frombuffer(content, np.uint8, count, start).reshape(sizes)


class MNIST(Dataset):
    """Handwritten digits: 60,000 for training, 10,000 to test.

    Args:
        image_path: the file of the images, ``*-images-idx3-ubyte.gz`` or unpacked.
        label_path: the file of the labels, ``*-labels-idx1-ubyte.gz`` or unpacked.
        mode: 'train' or 'test'.
        transform: a function of an image.
        download: whether files that are not given may be fetched into the cache.
        backend: 'pil' for images of Pillow, 'cv2' for arrays; that of ``set_image_backend`` unless given.

    Samples are pairs of an image and its label, an array of int64 with one element.

    Examples:
        >>> from oar.vision.datasets import MNIST
        >>> MNIST(image_path='images.gz', label_path='labels.gz')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [MNIST] image_path is 'images.gz', which does not exist.
    """

    NAME = "mnist"
    URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

    def __init__(
        self, image_path: str | os.PathLike[str] | None = None, label_path: str | os.PathLike[str] | None = None,
        mode: str = "train", transform: Callable[[Any], Any] | None = None, download: bool = True,
        backend: str | None = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.mode = _common.checked_mode(name, mode, ("train", "test"))
        self.backend = _common.checked_backend(name, backend)
        part = self.mode.upper()
        self.image_path = _common.file_of(name, "image_path", image_path, getattr(self, f"{part}_IMAGE_URL"),
                                          getattr(self, f"{part}_IMAGE_MD5"), self.NAME, download)
        self.label_path = _common.file_of(name, "label_path", label_path, getattr(self, f"{part}_LABEL_URL"),
                                          getattr(self, f"{part}_LABEL_MD5"), self.NAME, download)
        self.transform = transform
        self._parse_dataset()
        self.dtype = oar.get_default_dtype()

    def _parse_dataset(self) -> None:
        name = type(self).__name__
        self.images = _array(name, self.image_path, _IMAGES, 3)
        self.labels = _array(name, self.label_path, _LABELS, 1).astype(np.int64)[:, None]
        if len(self.images) != len(self.labels):
            raise _common.unreadable(name, self.label_path, f"it has {len(self.labels)} labels for {len(self.images)} images")

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        pixels, label = self.images[idx], self.labels[idx]
        if self.backend == "pil":
            image: Any = _common.import_pillow(type(self).__name__).fromarray(pixels)
        else:
            image = pixels.astype(np.float32)
        if self.transform is not None:
            image = self.transform(image)
        return _common.finished(image, self.backend), label

    def __len__(self) -> int:
        return len(self.labels)


class FashionMNIST(MNIST):
    """Pieces of clothing of ten kinds, in files like those of ``MNIST``.

    Args:
        image_path: as for ``MNIST``.
        label_path: as for ``MNIST``.
        mode: 'train' or 'test'.
        transform: a function of an image.
        download: as for ``MNIST``.
        backend: as for ``MNIST``.

    Examples:
        >>> from oar.vision.datasets import FashionMNIST
        >>> FashionMNIST(image_path='images.gz', label_path='labels.gz')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [FashionMNIST] image_path is 'images.gz', which does not exist.
    """

    NAME = "fashion-mnist"
    URL_PREFIX = "https://dataset.bj.bcebos.com/fashion_mnist/"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_IMAGE_MD5 = "bef4ecab320f06d8554ea6380940ec79"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TEST_LABEL_MD5 = "bb300cfdad3c16e7a12a480ee83cd310"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_IMAGE_MD5 = "8d4fb7e6c68d591d4c3dfef9ec88bf0d"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TRAIN_LABEL_MD5 = "25c81989df183df01b3e8a0aad5dffbe"
