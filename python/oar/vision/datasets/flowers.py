"""Photographs of 102 kinds of flowers."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np

from oar.io.dataset import Dataset
from oar.vision.datasets import _common

__all__ = ["Flowers"]

DATA_URL = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
LABEL_URL = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
SETID_URL = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"
# The part of the authors' for testing is the larger one, so it is used for training.
MODE_FLAG_MAP = {"train": "tstid", "test": "trnid", "valid": "valid"}


def _matrix(path: str, key: str) -> np.ndarray:
    try:
        from scipy.io import loadmat
    except ImportError:
        raise ImportError(f"[Flowers] needs SciPy to read {path}.\nhint: pip install scipy") from None
    try:
        return loadmat(path)[key][0]
    except (ValueError, KeyError, TypeError, NotImplementedError, OSError) as error:
        raise _common.unreadable("Flowers", path, f"there is no matrix {key!r} in it ({error})") from None


def _unpacked(path: str) -> str:
    """The folder with ``jpg/``: beside the archive, where it is unpacked once."""
    if os.path.isdir(path):
        return path
    folder = path[:-len(".tgz")] if path.endswith(".tgz") else f"{path}.unpacked"
    if not os.path.exists(os.path.join(folder, "jpg")):
        os.makedirs(folder, exist_ok=True)
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise _common.unreadable("Flowers", path, str(error)) from None
    return folder


class Flowers(Dataset):
    """Photographs of 102 kinds of flowers.

    Args:
        data_file: ``102flowers.tgz``, which is unpacked beside itself, or the folder that holds ``jpg/``.
        label_file: ``imagelabels.mat``. SciPy reads it.
        setid_file: ``setid.mat``.
        mode: 'train', 'valid' or 'test'.
        transform: a function of an image.
        download: whether files that are not given may be fetched into the cache.
        backend: 'pil' for images of Pillow, 'cv2' for arrays; that of ``set_image_backend`` unless given.

    Samples are pairs of an image and its label from 1 on, an array of int64 with one element.

    Examples:
        >>> from oar.vision.datasets import Flowers
        >>> Flowers(data_file='102flowers.tgz')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Flowers] data_file is '102flowers.tgz', which does not exist.
    """

    def __init__(
        self, data_file: str | os.PathLike[str] | None = None, label_file: str | os.PathLike[str] | None = None,
        setid_file: str | os.PathLike[str] | None = None, mode: str = "train",
        transform: Callable[[Any], Any] | None = None, download: bool = True, backend: str | None = None,
    ) -> None:  # fmt: skip
        flag = MODE_FLAG_MAP[_common.checked_mode("Flowers", mode, ("train", "valid", "test"))]
        self.backend = _common.checked_backend("Flowers", backend)
        data = _common.file_of("Flowers", "data_file", data_file, DATA_URL, DATA_MD5, "flowers", download)
        labels = _common.file_of("Flowers", "label_file", label_file, LABEL_URL, LABEL_MD5, "flowers", download)
        parts = _common.file_of("Flowers", "setid_file", setid_file, SETID_URL, SETID_MD5, "flowers", download)
        self.transform = transform
        self.data_path = _unpacked(data)
        self.labels = _matrix(labels, "labels")
        self.indexes = _matrix(parts, flag)

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        index = int(self.indexes[idx])
        path = os.path.join(self.data_path, "jpg", f"image_{index:05d}.jpg")
        if self.backend == "pil":
            from oar.vision._file_image import open_in_colour

            image: Any = open_in_colour(path)
        else:
            from oar.vision._files import decoded

            with open(path, "rb") as file:
                image = decoded("Flowers", file.read(), "rgb", path)
        if self.transform is not None:
            image = self.transform(image)
        return _common.finished(image, self.backend), np.array([self.labels[index - 1]], np.int64)

    def __len__(self) -> int:
        return len(self.indexes)
