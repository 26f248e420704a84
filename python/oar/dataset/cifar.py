"""Small photographs, as readers. ``oar.vision.datasets.Cifar10`` and ``Cifar100`` are the datasets for ``DataLoader``."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from oar._lazy import np
from oar.dataset._archive import Archive
from oar.dataset.common import found_or_fetched

__all__ = ["fetch", "reader_creator", "test10", "test100", "train10", "train100"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"

_ALLOWED = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "_codecs")


class _Unpickler(pickle.Unpickler):
    """Loads arrays and lists, and never runs other code of a file."""

    def find_class(self, module: str, name: str) -> Any:
        if module in _ALLOWED and name in ("ndarray", "dtype", "_reconstruct", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"[cifar] the file asks for {module}.{name}, which no file of CIFAR needs.")


def reader_creator(filename: str, sub_name: str, cycle: bool = False) -> Callable[[], Iterator]:
    """A reader of images and labels.

    Args:
        filename: the path of the archive, or of its folder.
        sub_name: which of its files: those whose names have this.
        cycle: whether it starts again at the end, for ever.

    Returns:
        a function without arguments that returns an iterator over samples: 3072 values from 0 to 1, and the class.
    """

    def once() -> Iterator:
        for _, content in Archive(filename, "cifar").files(rf"[^/]*{sub_name}[^/]*"):
            batch = _Unpickler(BytesIO(content), encoding="bytes").load()
            labels = batch.get(b"labels", batch.get(b"fine_labels"))
            for sample, label in zip(batch[b"data"], labels):
                yield (sample / 255.0).astype(np.float32), int(label)

    def reader() -> Iterator:
        yield from once()
        while cycle:
            yield from once()

    return reader


def _file10() -> str:
    return found_or_fetched("cifar", "cifar-10-python.tar.gz", None, CIFAR10_URL, CIFAR10_MD5, "cifar")


def _file100() -> str:
    return found_or_fetched("cifar", "cifar-100-python.tar.gz", None, CIFAR100_URL, CIFAR100_MD5, "cifar")


def train10(cycle: bool = False) -> Callable[[], Iterator]:
    """A reader of CIFAR-10 for training.

    Args:
        cycle: whether it starts again at the end, for ever.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return reader_creator(_file10(), "data_batch", cycle)


def test10(cycle: bool = False) -> Callable[[], Iterator]:
    """A reader of CIFAR-10 for testing.

    Args:
        cycle: whether it starts again at the end, for ever.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return reader_creator(_file10(), "test_batch", cycle)


def train100() -> Callable[[], Iterator]:
    """A reader of CIFAR-100 for training.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return reader_creator(_file100(), "train")


def test100() -> Callable[[], Iterator]:
    """A reader of CIFAR-100 for testing.

    Returns:
        a function without arguments that returns an iterator over samples.
    """
    return reader_creator(_file100(), "test")


def fetch() -> None:
    """Finds or fetches the files."""
    _file10()
    _file100()
