"""Files that appear whole or not at all, one or several together."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from typing import BinaryIO

__all__ = ["replace_files", "sync_directory"]

Writer = Callable[[BinaryIO], object]


class _Replacement:
    """New content for a path, written next to it. A link is followed; permissions of an old file stay.

    Something other than a file, such as a device or a named pipe, is written to, not replaced by a file.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self.directory = os.path.dirname(self.path)
        self.in_place = os.path.exists(self.path) and not os.path.isfile(self.path) and not os.path.isdir(self.path)
        self.temporary: str | None = None
        self.kept: str | None = None  # another name of the old file
        self.done = False

    def stage(self, writer: Writer) -> None:
        if self.in_place:
            with open(self.path, "wb") as file:
                writer(file)
            return
        os.makedirs(self.directory, exist_ok=True)
        handle, self.temporary = self._beside()
        with os.fdopen(handle, "wb") as file:
            writer(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(self.temporary, self._mode())

    def put(self, keep_old: bool) -> None:
        if self.in_place:
            return
        assert self.temporary is not None
        if keep_old and os.path.isfile(self.path):
            handle, self.kept = self._beside()
            os.close(handle)
            os.unlink(self.kept)
            _name_again(self.path, self.kept)
        os.replace(self.temporary, self.path)
        self.temporary, self.done = None, True

    def take_back(self) -> None:
        if not self.done:
            return
        if self.kept is not None:
            os.replace(self.kept, self.path)
            self.kept = None
        else:
            os.unlink(self.path)

    def clean(self) -> None:
        for name in (self.temporary, self.kept):
            if name is not None:
                with contextlib.suppress(OSError):
                    os.unlink(name)

    def _beside(self) -> tuple[int, str]:
        return tempfile.mkstemp(prefix=f".{os.path.basename(self.path)}.", suffix=".tmp", dir=self.directory)

    def _mode(self) -> int:
        try:
            return stat.S_IMODE(os.stat(self.path).st_mode)
        except FileNotFoundError:
            return 0o666 & ~_umask()


def replace_files(writers: dict[str, Writer]) -> None:
    """Writes every path's new content, and puts all of them in their places once all are on the disk.

    Where one cannot be written or put in its place, every path keeps what it had.
    """
    replacements = {path: _Replacement(path) for path in writers}
    try:
        for path, replacement in replacements.items():
            replacement.stage(writers[path])
        for replacement in replacements.values():
            replacement.put(keep_old=len(replacements) > 1)
    except BaseException:
        for replacement in replacements.values():
            with contextlib.suppress(OSError):
                replacement.take_back()
        raise
    finally:
        for replacement in replacements.values():
            replacement.clean()
    for directory in {replacement.directory for replacement in replacements.values() if replacement.done}:
        sync_directory(directory)


def _name_again(path: str, name: str) -> None:
    try:
        os.link(path, name)
    except OSError:  # not every file system has links
        shutil.copy2(path, name)


def sync_directory(directory: str) -> None:
    """What was created, renamed and removed in a directory is on the disk afterwards."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
