"""Remembers which files passed a check, by content: the file, all that it includes, and how it was checked.

The cache is outside the checkout, in $OAR_CACHE_DIR or the user's cache folder, so a fresh clone on the same machine
uses it too. An entry is an empty file named by a digest; one that was not used for 90 days is removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path

from check_common import ROOT

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.MULTILINE)
KEPT_SECONDS = 90 * 86400


def cache_folder() -> Path:
    """$OAR_CACHE_DIR, or `oar` in the user's cache folder, or, where none can be written, build/checks."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oar"
    for folder in (os.environ.get("OAR_CACHE_DIR"), user):
        if folder:
            try:
                Path(folder).mkdir(parents=True, exist_ok=True)
                if os.access(folder, os.W_OK):
                    return Path(folder)
            except OSError:
                continue
    return ROOT / "build/checks"


class Includes:
    """The project's files that a file includes, directly or not, found by reading `#include` lines."""

    def __init__(self, build: Path):
        self.roots = [ROOT / "src", build / "generated", ROOT / "python", ROOT / "tests/cpp", ROOT / "tests/fuzz"]
        self.build = build
        self.direct: dict[Path, tuple[Path, ...]] = {}
        self.digests: dict[Path, str] = {}

    def _found(self, name: str, near: Path) -> Path | None:
        for folder in (near.parent, *self.roots):
            path = Path(os.path.normpath(folder / name))
            if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
                return path
        return None  # a library's

    def _read(self, path: Path) -> tuple[Path, ...]:
        if path not in self.direct:
            content = path.read_bytes()
            self.digests[path] = hashlib.sha256(content).hexdigest()
            named = (self._found(name.decode(), path) for name in INCLUDE.findall(content))
            self.direct[path] = tuple(p for p in named if p)
        return self.direct[path]

    def closure(self, path: Path) -> set[Path]:
        """The file itself and everything of the project that it includes."""
        found, open_ = set(), [path]
        while open_:
            current = open_.pop()
            if current not in found:
                found.add(current)
                open_.extend(self._read(current))
        return found

    def digest(self, path: Path) -> str:
        """The same for the same contents under the same names, wherever the checkout is."""
        lines = sorted(f"{self._name(p)} {self.digests[p]}" for p in self.closure(path))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.build if path.is_relative_to(self.build) else ROOT))


class Passed:
    """What passed one check. `about` is everything else that decides: the tool's version, its options."""

    def __init__(self, check: str, about: str, includes: Includes):
        self.folder = cache_folder() / check
        self.about, self.includes = about, includes
        self._remove_old()

    def _entry(self, path: Path, command: str) -> Path:
        text = "\n".join((self.about, command, self.includes.digest(path)))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self.folder / digest[:2] / digest[2:]

    def has(self, path: Path, command: str = "") -> bool:
        entry = self._entry(path, command)
        if not entry.exists():
            return False
        os.utime(entry)
        return True

    def add(self, path: Path, command: str = "") -> None:
        entry = self._entry(path, command)
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.touch()

    def _remove_old(self) -> None:
        limit = time.time() - KEPT_SECONDS
        for entry in self.folder.glob("??/*"):
            if entry.stat().st_mtime < limit:
                entry.unlink(missing_ok=True)
