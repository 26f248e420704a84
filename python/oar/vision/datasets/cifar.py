"""Small photographs of 10 or 100 kinds, 32 x 32 pixels."""

from __future__ import annotations

import os
import pickle
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

import oar
from oar.io.dataset import Dataset
from oar.vision.datasets import _common

__all__ = ["Cifar10", "Cifar100"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
MODE_FLAG_MAP = {"train10": "data_batch", "test10": "test_batch", "train100": "train", "test100": "test"}


class _ArrayUnpickler(pickle.Unpickler):
    """Reads what the files hold, arrays in dictionaries. Anything else in a pickle could run code."""

    _ALLOWED = {"_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"}

    def find_class(self, module: str, name: str) -> Any:
        if (module.startswith("numpy") and name in self._ALLOWED) or (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


class Cifar10(Dataset):
    """Photographs of ten kinds: 50,000 for training, 10,000 to test.

    Args:
        data_file: ``cifar-10-python.tar.gz``, or the folder that is in it.
        mode: 'train' or 'test'.
        transform: a function of an image.
        download: whether a file that is not given may be fetched into the cache.
        backend: 'pil' for images of Pillow, 'cv2' for arrays; that of ``set_image_backend`` unless given.

    Samples are pairs of an image and its label, an array of int64 without axes.

    Examples:
        >>> from oar.vision.datasets import Cifar10
        >>> Cifar10(data_file='cifar-10-python.tar.gz')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Cifar10] data_file is 'cifar-10-python.tar.gz', which does not exist.
    """

    def __init__(
        self, data_file: str | os.PathLike[str] | None = None, mode: str = "train",
        transform: Callable[[Any], Any] | None = None, download: bool = True, backend: str | None = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        self.mode = _common.checked_mode(name, mode, ("train", "test"))
        self.backend = _common.checked_backend(name, backend)
        self._init_url_md5_flag()
        self.data_file = _common.file_of(name, "data_file", data_file, self.data_url, self.data_md5, "cifar", download)
        self.transform = transform
        self._load_data()
        self.dtype = oar.get_default_dtype()

    def _init_url_md5_flag(self) -> None:
        self.data_url, self.data_md5 = CIFAR10_URL, CIFAR10_MD5
        self.flag = MODE_FLAG_MAP[self.mode + "10"]

    def _batches(self) -> Iterator[tuple[str, IO[bytes]]]:
        """The files of the chosen part, from the archive or the folder, in the order of their names."""
        if os.path.isdir(self.data_file):
            for name in sorted(os.listdir(self.data_file)):
                if self.flag in name:
                    path = os.path.join(self.data_file, name)
                    with open(path, "rb") as file:
                        yield path, file
            return
        with tarfile.open(self.data_file) as archive:
            for name in sorted(member.name for member in archive if self.flag in os.path.basename(member.name)):
                inner = archive.extractfile(name)
                if inner is not None:
                    yield name, inner

    def _load_data(self) -> None:
        self.data: list[tuple[np.ndarray, int]] = []
        try:
            for name, file in self._batches():
                batch = _ArrayUnpickler(file, encoding="bytes").load()
                labels = batch.get(b"labels", batch.get(b"fine_labels"))
                if labels is None or b"data" not in batch:
                    raise ValueError(f"{name} lacks images or labels")
                self.data.extend(zip(batch[b"data"], labels))
        except (tarfile.TarError, pickle.UnpicklingError, EOFError, ValueError, AttributeError, OSError) as error:
            raise _common.unreadable(type(self).__name__, str(self.data_file), str(error)) from None
        if not self.data:
            raise _common.unreadable(type(self).__name__, str(self.data_file), f"it has no file {self.flag}*")

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        pixels, label = self.data[idx]
        image: Any = np.reshape(pixels, [3, 32, 32]).transpose([1, 2, 0])
        if self.backend == "pil":
            image = _common.import_pillow(type(self).__name__).fromarray(np.ascontiguousarray(image.astype(np.uint8)))
        if self.transform is not None:
            image = self.transform(image)
        return _common.finished(image, self.backend), np.array(label).astype(np.int64)

    def __len__(self) -> int:
        return len(self.data)


class Cifar100(Cifar10):
    """Photographs of a hundred kinds: 50,000 for training, 10,000 to test.

    Args:
        data_file: ``cifar-100-python.tar.gz``, or the folder that is in it.
        mode: 'train' or 'test'.
        transform: a function of an image.
        download: as for ``Cifar10``.
        backend: as for ``Cifar10``.

    Examples:
        >>> from oar.vision.datasets import Cifar100
        >>> Cifar100(data_file='cifar-100-python.tar.gz')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Cifar100] data_file is 'cifar-100-python.tar.gz', which does not exist.
    """

    def _init_url_md5_flag(self) -> None:
        self.data_url, self.data_md5 = CIFAR100_URL, CIFAR100_MD5
        self.flag = MODE_FLAG_MAP[self.mode + "100"]
