"""Handwritten digits, as readers. ``oar.vision.datasets.MNIST`` is the dataset for ``DataLoader``."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Iterator

from oar._lazy import np
from oar.dataset.common import found_or_fetched

__all__ = ["fetch", "reader_creator", "test", "train"]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

_IMAGES, _LABELS = 2051, 2049


def _content(path: str, magic: int, sizes: int) -> np.ndarray:
    """The bytes of an IDX file, gzipped or not, in their shape."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else open(path, "rb") as file:
        found, *shape = struct.unpack(f">{1 + sizes}I", file.read(4 * (1 + sizes)))
        if found != magic:
            raise ValueError(f"[mnist] {path!r} starts with {found}, not with {magic}. Is it the right file?")
        return np.frombuffer(file.read(), np.uint8).reshape(shape)


def reader_creator(image_filename: str, label_filename: str, buffer_size: int = 100) -> Callable[[], Iterator]:
    """A reader of images and labels.

    Args:
        image_filename: the path of the images, an IDX file, gzipped or not.
        label_filename: the path of the labels.
        buffer_size: how many images are converted at a time.

    Returns:
        a function without arguments that returns an iterator over samples: 784 pixels from -1 to 1, and the digit.
    """

    def reader() -> Iterator:
        images, labels = _content(image_filename, _IMAGES, 3), _content(label_filename, _LABELS, 1)
        for start in range(0, len(labels), buffer_size):
            pixels = images[start : start + buffer_size].reshape(-1, images[0].size).astype("float32") / 255.0 * 2.0 - 1.0
            yield from zip(pixels, labels[start : start + buffer_size].tolist())

    return reader


def train() -> Callable[[], Iterator]:
    """A reader of the 60,000 digits for training.

    Returns:
        a function without arguments that returns an iterator over samples: 784 pixels from -1 to 1, and the digit.
    """
    return reader_creator(_file("train images", TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5), _file("train labels", TRAIN_LABEL_URL, TRAIN_LABEL_MD5))


def test() -> Callable[[], Iterator]:
    """A reader of the 10,000 digits for testing.

    Returns:
        a function without arguments that returns an iterator over samples: 784 pixels from -1 to 1, and the digit.
    """
    return reader_creator(_file("test images", TEST_IMAGE_URL, TEST_IMAGE_MD5), _file("test labels", TEST_LABEL_URL, TEST_LABEL_MD5))


def _file(what: str, url: str, md5: str) -> str:
    return found_or_fetched("mnist", what, None, url, md5, "mnist")


def fetch() -> None:
    """Finds or fetches the files."""
    train()
    test()
