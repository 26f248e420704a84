"""The files of a dataset, in a tar or zip archive or in a folder."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator

__all__ = ["Archive"]


class Archive:
    """Files by name, whether they are packed or not.

    Args:
        path: a tar or zip archive, or the folder that it unpacks to.
        owner: the dataset, for messages.
    """

    def __init__(self, path: str, owner: str) -> None:
        self._path = os.fspath(path)
        self._owner = owner
        if not os.path.exists(self._path):
            raise FileNotFoundError(f"[{owner}] there is no file or folder {self._path!r}. Pass the path of the archive, or of its folder.")

    def files(self, pattern: str) -> Iterator[tuple[str, bytes]]:
        """Names that ``pattern`` matches at their end, after a ``/`` or whole, and the contents, in the order of the archive."""
        wanted = re.compile(rf"(?:^|/)(?:{pattern})$")
        if os.path.isdir(self._path):
            yield from self._in_folder(wanted)
        elif zipfile.is_zipfile(self._path):
            yield from self._in_zip(wanted)
        elif tarfile.is_tarfile(self._path):
            yield from self._in_tar(wanted)
        else:
            raise ValueError(f"[{self._owner}] {self._path!r} is neither a tar or zip archive nor a folder.")

    def _in_folder(self, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
        top = os.path.basename(os.path.abspath(self._path))
        for folder, folders, names in os.walk(self._path):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                full = "/".join([top, *os.path.relpath(path, self._path).split(os.sep)])
                if wanted.search(full):
                    with open(path, "rb") as file:
                        yield full, file.read()

    def _in_zip(self, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(self._path) as archive:
            for name in archive.namelist():
                if wanted.search(name):
                    yield name, archive.read(name)

    def _in_tar(self, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
        with tarfile.open(self._path) as archive:
            for entry in archive:
                if entry.isfile() and wanted.search(entry.name):
                    file = archive.extractfile(entry)
                    assert file is not None, "regular files have content"
                    yield entry.name, file.read()

    def read(self, name: str) -> bytes:
        """The file whose name ends in ``name``. There must be one."""
        for _, content in self.files(re.escape(name)):
            return content
        raise FileNotFoundError(f"[{self._owner}] {self._path!r} has no file {name!r}. Is it the right archive, and whole?")

    def lines(self, name: str) -> list[bytes]:
        """The lines of that file, without white space around."""
        lines = self.read(name).split(b"\n")
        return [line.strip() for line in (lines if lines[-1] else lines[:-1])]
