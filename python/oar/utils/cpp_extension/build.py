"""Compiling a library of ops, once for each content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import oar

_PACKAGE = Path(oar.__file__).resolve().parent
_STAGED = Path(oar.__file__).parent  # in the build tree `include` and `lib` are next to links to the sources


def get_build_directory(verbose: bool = False) -> str:
    """Where ``load`` keeps what it has built: ``OAR_EXTENSION_DIR``, or a folder in the user's cache.

    Args:
        verbose: whether to print the folder.

    Returns:
        the path of the folder, which exists.

    Examples:
        >>> import os, tempfile
        >>> from oar.utils.cpp_extension import get_build_directory
        >>> before = os.environ.get("OAR_EXTENSION_DIR")
        >>> os.environ["OAR_EXTENSION_DIR"] = os.path.join(tempfile.mkdtemp(), "extensions")
        >>> folder = get_build_directory()
        >>> os.path.basename(folder), os.path.isdir(folder)
        ('extensions', True)
        >>> _ = os.environ.pop("OAR_EXTENSION_DIR") if before is None else os.environ.update(OAR_EXTENSION_DIR=before)
    """
    folder = os.environ.get("OAR_EXTENSION_DIR") or os.environ.get("PADDLE_EXTENSION_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(cache, "oar_extensions")
    os.makedirs(folder, exist_ok=True)
    if verbose:
        print(f"extensions are built in {folder}")
    return folder


def include_folders() -> list[str]:
    """Oar's headers, and the folder from which ``paddle/extension.h`` is found."""
    headers = _home() / "include"
    return [str(headers), str(headers / "oar" / "extension")]


def library_folder() -> str:
    return str(_home() / "lib")


def _home() -> Path:
    for folder in (_STAGED, _PACKAGE):
        if (folder / "include" / "oar" / "oar.h").exists():
            return folder
    raise RuntimeError(f"Oar's headers are missing: there is no include folder in {_STAGED}.")


def compiler() -> list[str]:
    """The command of the C++ compiler: ``CXX``, else c++, g++ or clang++."""
    chosen = os.environ.get("CXX")
    if chosen:
        return shlex.split(chosen)
    for name in ("c++", "g++", "clang++"):
        if path := shutil.which(name):
            return [path]
    raise RuntimeError("There is no C++ compiler. Install g++ 12 or newer, or set CXX to one.")


def compile_command(sources: Iterable[str], output: str, *, cflags: Sequence[str] = (), ldflags: Sequence[str] = (),
                    includes: Sequence[str] = (), libraries: Sequence[str] = ()) -> list[str]:
    own = library_folder()
    return [*compiler(), "-std=c++20", "-O2", "-fPIC", "-shared", "-fno-strict-aliasing",
            *(f"-I{folder}" for folder in (*includes, *include_folders())), *cflags, *sources, "-o", output,
            *(f"-L{folder}" for folder in (*libraries, own)), "-loar", f"-Wl,-rpath,{own}", *ldflags]


def compile_library(command: list[str], verbose: bool = False, dependencies: str | None = None) -> str:
    """Runs the compiler; an error shows what it said. The files that it read are appended to ``dependencies``."""
    if verbose:
        print(shlex.join(command))
    with open(dependencies or os.devnull, "ab") as rules:
        # The compiler cuts this variable's value at a space, so it gets the open file.
        environment = {**os.environ, "DEPENDENCIES_OUTPUT": f"/dev/fd/{rules.fileno()}"} if dependencies else None
        done = subprocess.run(command, capture_output=True, text=True, env=environment, pass_fds=[rules.fileno()])
    said = (done.stdout + done.stderr).strip()
    if done.returncode:
        raise RuntimeError(f"The extension does not compile (status {done.returncode}):\n{said}\n"
                           f"The command was: {shlex.join(command)}")
    if verbose and said:
        print(said)
    return said


def _digest(path: str) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def _read_dependencies(path: Path) -> list[str]:
    """The files in make rules, one rule for each source, without headers of the system."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    words = {word for line in lines for word in re.findall(r"(?:\\[ #]|\S)+", line.partition(": ")[2])}
    return sorted(re.sub(r"\\([ #])", r"\1", word).replace("$$", "$") for word in words)


class CachedBuild:
    """A library in a folder, with a note of everything that went into it."""

    def __init__(self, folder: Path, name: str, command_of) -> None:
        self.folder, self.name, self.command_of = folder, name, command_of

    def library(self, verbose: bool = False) -> str:
        """The path of the library, built now unless nothing has changed."""
        version = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout
        key = hashlib.sha256(json.dumps([self.command_of("OUTPUT"), version, oar.__version__]).encode()).hexdigest()
        note = self.folder / f"{self.name}.json"
        try:
            known = json.loads(note.read_text())
        except (OSError, ValueError):
            known = {}
        library = self.folder / known.get("library", "-")
        if known.get("key") == key and library.exists() and \
                all(_digest(path) == digest for path, digest in known["files"].items()):
            return str(library)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            made, rule = Path(scratch, "library.so"), Path(scratch, "library.d")
            compile_library(self.command_of(str(made)), verbose, str(rule))
            files = {path: _digest(path) for path in _read_dependencies(rule)}
            # The content names the file: a process that has the old one loaded keeps it.
            content = hashlib.sha256(json.dumps([key, files], sort_keys=True).encode()).hexdigest()[:16]
            library = self.folder / f"{self.name}-{content}.so"
            os.replace(made, library)
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"key": key, "library": library.name, "files": files}))
        os.replace(fresh, note)
        return str(library)
