"""Photographs with the class of each pixel."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np

import oar
from oar.io.dataset import Dataset
from oar.vision.datasets import _common

__all__ = ["VOC2012"]

VOC_URL = "https://dataset.bj.bcebos.com/voc/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
SET_FILE = "VOCdevkit/VOC2012/ImageSets/Segmentation/{}.txt"
DATA_FILE = "VOCdevkit/VOC2012/JPEGImages/{}.jpg"
LABEL_FILE = "VOCdevkit/VOC2012/SegmentationClass/{}.png"
CACHE_DIR = "voc2012"
MODE_FLAG_MAP = {"train": "trainval", "test": "train", "valid": "val"}


class _Files:
    """Files by name, in a folder or in an archive that is not packed. Each read names its place, so that the worker processes of a
    loader can share the archive."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.places: dict[str, tuple[int, int]] | None = None
        if os.path.isdir(path):
            return
        try:
            with tarfile.open(path, "r:") as archive:
                self.places = {member.name: (member.offset_data, member.size) for member in archive if member.isfile()}
        except (tarfile.TarError, EOFError) as error:
            raise _common.unreadable("VOC2012", path, str(error)) from None

    def read(self, name: str) -> bytes:
        if self.places is None:
            with open(os.path.join(self.path, name), "rb") as file:
                return file.read()
        if name not in self.places:
            raise _common.unreadable("VOC2012", self.path, f"it has no file {name}")
        start, size = self.places[name]
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(size)


class VOC2012(Dataset):
    """Photographs, and images of the classes of their pixels.

    Args:
        data_file: ``VOCtrainval_11-May-2012.tar``, or the folder that holds ``VOCdevkit/``.
        mode: 'train', 'valid' or 'test'.
        transform: a function of a photograph; the other image stays as it is.
        download: whether a file that is not given may be fetched into the cache.
        backend: 'pil' for images of Pillow, 'cv2' for arrays; that of ``set_image_backend`` unless given.

    Samples are pairs of a photograph and an image of its classes.

    Examples:
        >>> from oar.vision.datasets import VOC2012
        >>> VOC2012(data_file='VOCtrainval_11-May-2012.tar')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [VOC2012] data_file is 'VOCtrainval_11-May-2012.tar', which does not exist.
    """

    def __init__(
        self, data_file: str | os.PathLike[str] | None = None, mode: str = "train",
        transform: Callable[[Any], Any] | None = None, download: bool = True, backend: str | None = None,
    ) -> None:  # fmt: skip
        self.backend = _common.checked_backend("VOC2012", backend)
        self.flag = MODE_FLAG_MAP[_common.checked_mode("VOC2012", mode, ("train", "valid", "test"))]
        self.data_file = _common.file_of("VOC2012", "data_file", data_file, VOC_URL, VOC_MD5, CACHE_DIR, download)
        self.transform = transform
        self._load_anno()
        self.dtype = oar.get_default_dtype()

    def _load_anno(self) -> None:
        self._files = _Files(self.data_file)
        names = self._files.read(SET_FILE.format(self.flag)).decode().split()
        self.data = [DATA_FILE.format(name) for name in names]
        self.labels = [LABEL_FILE.format(name) for name in names]

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        image, classes = self._opened(self.data[idx]), self._opened(self.labels[idx])
        if self.transform is not None:
            image = self.transform(image)
        return _common.finished(image, self.backend), _common.finished(classes, self.backend)

    def _opened(self, name: str) -> Any:
        # A palette is what numbers the classes: it must not become colours, so Pillow reads both.
        image = _common.import_pillow("VOC2012").open(io.BytesIO(self._files.read(name)))
        return np.array(image) if self.backend == "cv2" else image

    def __len__(self) -> int:
        return len(self.data)
