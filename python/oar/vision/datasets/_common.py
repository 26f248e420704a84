"""What the data sets share: where their files are, and which kinds of images they return."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import oar
from oar._C import ArgumentValueError
from oar.dataset.common import DATA_HOME, download
from oar.vision.image import get_image_backend

__all__ = ["checked_backend", "checked_mode", "existing", "file_of", "finished", "import_pillow", "unreadable"]


def checked_mode(name: str, mode: str, modes: tuple[str, ...]) -> str:
    if not isinstance(mode, str) or mode.lower() not in modes:
        raise ArgumentValueError(f"[{name}] mode is {mode!r}; it can be {', '.join(map(repr, modes))}.")
    return mode.lower()


def checked_backend(name: str, backend: str | None) -> str:
    chosen = get_image_backend() if backend is None else backend
    if chosen not in ("pil", "cv2"):
        raise ArgumentValueError(f"[{name}] backend is {chosen!r}; it can be 'pil' or 'cv2'.")
    if chosen == "pil":
        import_pillow(name)
    return chosen


def import_pillow(name: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"[{name}] the backend 'pil' needs Pillow.\nhint: pip install pillow, or backend='cv2'") from None
    return Image


def existing(name: str, argument: str, path: str | os.PathLike[str]) -> str:
    """The path of a file or folder that the user named."""
    found = os.path.expanduser(os.fspath(path))
    if not os.path.exists(found):
        raise FileNotFoundError(f"[{name}] {argument} is {found!r}, which does not exist.")
    return found


def file_of(name: str, argument: str, path: str | os.PathLike[str] | None, url: str, md5: str, folder: str,
            may_download: bool) -> str:
    """The path of a file: the user's, that in the cache, or one that is downloaded into it."""
    if path:
        return existing(name, argument, path)
    place = os.path.join(DATA_HOME, folder, url.rsplit("/", 1)[-1])
    if not may_download:
        raise ArgumentValueError(f"[{name}] {argument} is not set and download is False. Pass {argument}, or download=True.")
    try:
        return download(url, folder, md5)
    except RuntimeError as error:
        raise RuntimeError(f"[{name}] {place} does not exist and {url} cannot be downloaded. Download it on another machine and "
                           f"put it there, or pass {argument}, the path of the file.\n{error}") from None


def unreadable(name: str, path: str, reason: str) -> ArgumentValueError:
    return ArgumentValueError(f"[{name}] {path} cannot be read: {reason}. Download the file again.")


def finished(image: Any, backend: str) -> Any:
    """Arrays are returned in the default dtype."""
    return image if backend == "pil" or not isinstance(image, np.ndarray) else image.astype(oar.get_default_dtype())
