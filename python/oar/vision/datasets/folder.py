"""Folders of images."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import oar
from oar._C import ArgumentTypeError
from oar.io.dataset import Dataset
from oar.vision.image import get_image_backend, image_load

__all__ = ["DatasetFolder", "ImageFolder"]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_valid_extension(filename: str, extensions: Sequence[str]) -> bool:
    """Whether a name ends with one of the extensions, whatever the case.

    Args:
        filename: the name.
        extensions: a list or tuple.

    Returns:
        a bool.

    Examples:
        >>> from oar.vision.datasets.folder import has_valid_extension
        >>> has_valid_extension('a.JPG', ['.jpg'])
        True
    """
    if not isinstance(extensions, (list, tuple)):
        raise ArgumentTypeError(f"[has_valid_extension] extensions is {extensions!r}; it must be a list or a tuple.")
    return filename.lower().endswith(tuple(extension.lower() for extension in extensions))


def _files(folder: str, is_valid: Callable[[str], bool]) -> Iterator[str]:
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        for name in sorted(names):
            path = os.path.join(root, name)
            if is_valid(path):
                yield path


def _filter(extensions: Sequence[str] | None, is_valid_file: Callable[[str], bool] | None) -> Callable[[str], bool]:
    """Which files count: those of the extensions; without any, those that the function accepts, or images."""
    if extensions is None and is_valid_file is not None:
        return is_valid_file
    wanted = IMG_EXTENSIONS if extensions is None else extensions
    return lambda path: has_valid_extension(path, wanted)


def make_dataset(
    dir: str, class_to_idx: dict[str, int], extensions: Sequence[str] | None,
    is_valid_file: Callable[[str], bool] | None = None,
) -> list[tuple[str, int]]:  # fmt: skip
    """The files of a folder with one subfolder for each class.

    Args:
        dir: the folder.
        class_to_idx: the numbers of classes by the names of subfolders.
        extensions: of the files that count.
        is_valid_file: says of a path whether it counts, if extensions is None.

    Returns:
        a list of pairs of a path and the number of its class.

    Examples:
        >>> import os, tempfile
        >>> from oar.vision.datasets.folder import make_dataset
        >>> make_dataset(tempfile.mkdtemp(), {'cats': 0}, ['.jpg'])
        []
    """
    root, is_valid = os.path.expanduser(dir), _filter(extensions, is_valid_file)
    return [(path, class_to_idx[name]) for name in sorted(class_to_idx)
            for path in _files(os.path.join(root, name), is_valid)]


def pil_loader(path: str) -> Any:
    """Reads an image in colour, for Pillow. JPEG and PNG files are decoded when the pixels are needed: what a crop leaves out
    may never be.

    Args:
        path: the path of the file.

    Returns:
        an image of Pillow.

    Examples:
        >>> from oar.vision.datasets.folder import pil_loader
        >>> pil_loader('no-such-file.jpg')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.jpg'
    """
    from oar.vision.datasets._common import import_pillow

    import_pillow("pil_loader")
    from oar.vision._file_image import open_in_colour

    return open_in_colour(path)


def cv2_loader(path: str) -> Any:
    """Reads an image as an array [height, width, channels] in the order red, green, blue.

    Args:
        path: the path of the file.

    Returns:
        an array of uint8.

    Examples:
        >>> from oar.vision.datasets.folder import cv2_loader
        >>> cv2_loader('no-such-file.jpg')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.jpg'
    """
    return image_load(path, "cv2")[:, :, ::-1].copy()


def default_loader(path: str) -> Any:
    """Reads an image as the backend of ``set_image_backend`` says: an array for 'cv2', else an image of Pillow.

    Args:
        path: the path of the file.

    Returns:
        the image.

    Examples:
        >>> from oar.vision.datasets.folder import default_loader
        >>> default_loader('no-such-file.jpg')
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.jpg'
    """
    return cv2_loader(path) if get_image_backend() == "cv2" else pil_loader(path)


class DatasetFolder(Dataset):
    """A folder with one subfolder of images for each class. Classes are numbered in the order of their names.

    Args:
        root: the folder.
        loader: reads a sample, given its path. Unless given, ``image_load`` in colour, with the backend that was set.
        extensions: of the files that count, a list or tuple; those of images unless given.
        transform: a function of the sample.
        is_valid_file: says of a path whether it counts, if extensions is None.

    Samples are pairs of an image and the number of its class. Attributes: ``classes``, ``class_to_idx``, ``samples``, ``targets``.

    Examples:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from oar.vision.datasets import DatasetFolder
        >>> root = tempfile.mkdtemp()
        >>> for name in ['cats', 'dogs']:
        ...     os.mkdir(os.path.join(root, name))
        ...     np.save(os.path.join(root, name, 'one.npy'), np.zeros(2))
        >>> animals = DatasetFolder(root, loader=np.load, extensions=['.npy'])
        >>> animals.classes, animals[1]
        (['cats', 'dogs'], (array([0., 0.]), 1))
    """

    def __init__(
        self, root: str, loader: Callable[[str], Any] | None = None, extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None, is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip
        self.root = root
        self.transform = transform
        self.classes, self.class_to_idx = self._find_classes(self.root)
        self.samples = make_dataset(self.root, self.class_to_idx, extensions, is_valid_file)
        if not self.samples:
            raise RuntimeError(f"[DatasetFolder] the subfolders of {root} hold no files that count. There must be one subfolder "
                               f"for each class, with files that end with {', '.join(extensions or IMG_EXTENSIONS)}.")
        self.loader = default_loader if loader is None else loader
        self.extensions = IMG_EXTENSIONS if extensions is None else extensions
        self.targets = [target for _, target in self.samples]
        self.dtype = oar.get_default_dtype()

    def _find_classes(self, dir: str) -> tuple[list[str], dict[str, int]]:
        folder = os.path.expanduser(dir)
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"[DatasetFolder] root is {dir!r}, which is no folder. Pass one with a subfolder for each class.")
        classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        return classes, {name: i for i, name in enumerate(classes)}

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        sample = self.loader(path)
        return (sample if self.transform is None else self.transform(sample)), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(Dataset):
    """All images in a folder and its subfolders, without classes.

    Args:
        root: the folder.
        loader: as for ``DatasetFolder``.
        extensions: as for ``DatasetFolder``.
        transform: as for ``DatasetFolder``.
        is_valid_file: as for ``DatasetFolder``.

    Samples are lists with one image. Attribute: ``samples``, the paths.

    Examples:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from oar.vision.datasets import ImageFolder
        >>> root = tempfile.mkdtemp()
        >>> np.save(os.path.join(root, 'one.npy'), np.zeros(2))
        >>> ImageFolder(root, loader=np.load, extensions=['.npy'])[0]
        [array([0., 0.])]
    """

    def __init__(
        self, root: str, loader: Callable[[str], Any] | None = None, extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None, is_valid_file: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip
        self.root = root
        folder = os.path.expanduser(root)
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"[ImageFolder] root is {root!r}, which is no folder.")
        self.samples = list(_files(folder, _filter(extensions, is_valid_file)))
        if not self.samples:
            raise RuntimeError(f"[ImageFolder] {root} and its subfolders hold no files that count: they must end with "
                               f"{', '.join(extensions or IMG_EXTENSIONS)}.")
        self.loader = default_loader if loader is None else loader
        self.extensions = IMG_EXTENSIONS if extensions is None else extensions
        self.transform = transform

    def __getitem__(self, index: int) -> list[Any]:
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self) -> int:
        return len(self.samples)
