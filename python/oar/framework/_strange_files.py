"""Messages for users who load a file that is not a checkpoint."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from typing import BinaryIO

from oar.framework._pickle import UnsafePickleError, place_of_damage

__all__ = ["explained", "name_of"]

_PICKLE = b"\x80"
_KINDS = {
    b"\x93NUMPY": "it is a NumPy array. Use numpy.load, and to_tensor on the result",
    b"\x89HDF": "it is an HDF5 file. Read it with h5py, and use to_tensor on its arrays",
    b"\x1f\x8b": "it is compressed with gzip. Unpack it first",
    b"version https://git-lfs": "it is a pointer of Git LFS. Get the file itself with `git lfs pull`",
    b"<": "it is a web page or XML; the download may have failed",
}


def _reason(start: bytes) -> str:
    if not start:
        return "it is empty"
    for mark, text in _KINDS.items():
        if start.startswith(mark):
            return text
    if len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 30:
        return "it looks like safetensors. Give it a name that ends in .safetensors"
    return f"it begins with {start[:16]!r}. load() reads what save() wrote, here or in Paddle, and .safetensors"


@contextlib.contextmanager
def explained(file: BinaryIO) -> Iterator[None]:
    """Inside it, the error for a file that cannot be read names the file and what it is instead."""
    begin = file.tell() if file.seekable() else None
    try:
        yield
    except UnsafePickleError:
        raise
    except pickle.UnpicklingError as error:
        if begin is None:
            raise
        raise pickle.UnpicklingError(f"{name_of(file)} is not a checkpoint: {_problem(file, begin)}.") from error


def name_of(file: BinaryIO) -> str:
    """What an error calls a file."""
    name = getattr(file, "name", None)
    return f"'{os.fsdecode(name)}'" if isinstance(name, (str, bytes)) else "The file"


def _problem(file: BinaryIO, begin: int) -> str:
    file.seek(begin)
    start = file.read(32)
    if not start.startswith(_PICKLE):
        return _reason(start)
    size = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    place = place_of_damage(file)
    where = f" in {place!r}" if place else ""
    return f"it is a pickle of {size} bytes that is damaged or cut off{where}. Copy or download it again"
