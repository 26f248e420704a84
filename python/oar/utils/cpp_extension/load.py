"""A library of ops as a module of functions."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from oar import _C
from oar.utils.cpp_extension.build import CachedBuild, compile_command, get_build_directory

_threads = threading.Lock()


def _free_in_child() -> None:
    """A child has only the thread that forked; another may have been building."""
    global _threads
    _threads = threading.Lock()


os.register_at_fork(after_in_child=_free_in_child)


@contextlib.contextmanager
def _only_one(folder: Path):
    """Among threads and processes: a build writes files that another one reads."""
    with _threads, open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def load_library(path: str, name: str) -> ModuleType:
    """A module with the ops of a compiled library as functions."""
    module = ModuleType(name, f"Ops of {path}.")
    module.__file__ = path
    for function_name, function in _C.load_extension(path):
        setattr(module, function_name, function)
    vars(module)["__all__"] = [key for key in vars(module) if not key.startswith("__")]
    return module


def load(name: str, sources: Sequence[str], extra_cxx_cflags: Sequence[str] | None = None,
         extra_cuda_cflags: Sequence[str] | None = None, extra_ldflags: Sequence[str] | None = None,
         extra_include_paths: Sequence[str] | None = None, extra_library_paths: Sequence[str] | None = None,
         build_directory: str | None = None, verbose: bool = False) -> ModuleType:
    """Compiles C++ sources that register ops and returns a module with the ops as functions.

    What was built is kept in ``build_directory`` (``get_build_directory()`` by default) and used again as long as the
    sources, the headers they include, the flags and the compiler are the same.

    Args:
        name: the name of the module, a Python identifier.
        sources: the files to compile.
        extra_cxx_cflags: more flags for the compiler.
        extra_cuda_cflags: accepted for compatibility; there is no CUDA back end.
        extra_ldflags: more flags for the linker.
        extra_include_paths: more folders with headers.
        extra_library_paths: more folders with libraries.
        build_directory: where to build.
        verbose: whether to print the command and the compiler's output.

    Returns:
        a module with one function for each op.

    Examples:
        This needs a C++ compiler: g++ 12 or newer, or the one in ``CXX``.

        >>> import os, tempfile
        >>> import oar
        >>> from oar.utils.cpp_extension import load
        >>> folder = tempfile.mkdtemp()
        >>> source = os.path.join(folder, "halve.cpp")
        >>> with open(source, "w") as file:
        ...     _ = file.write('''
        ...         #include "oar/extension/extension.h"
        ...         #include "oar/ops/core/operators.h"
        ...         static oar::OpDef halve() {
        ...           return {
        ...               .schema = "docs_halve(Tensor x) -> Tensor",
        ...               .brief = "Half of x.",
        ...               .decompose = [](const oar::Args& a) -> oar::Made { return a[0].as_tensor() * 0.5; },
        ...           };
        ...         }
        ...         OAR_EXTENSION_OP(halve);
        ...     ''')
        ...
        >>> ops = load(name="halving", sources=[source], build_directory=folder)
        >>> ops.docs_halve(oar.to_tensor([1.0, 6.0])).tolist()
        [0.5, 3.0]
    """
    if not name.isidentifier():
        raise ValueError(f"[load] name is '{name}', which is not a Python identifier.")
    if isinstance(sources, (str, os.PathLike)):
        raise TypeError(f"[load] sources is '{sources}'; pass a list of files.")
    paths = [os.path.abspath(source) for source in sources]
    if not paths:
        raise ValueError("[load] sources is empty; pass the files to compile.")
    for path in paths:
        if path.endswith((".cu", ".cuh")):
            raise NotImplementedError(f"[load] {path} is CUDA, and Oar has no CUDA back end. Leave it out.")
        if not os.path.exists(path):
            raise FileNotFoundError(f"[load] there is no file {path}.")
    folder = Path(build_directory or get_build_directory(), name).absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def command(output: str) -> list[str]:
        return compile_command(paths, output, cflags=extra_cxx_cflags or (), ldflags=extra_ldflags or (),
                               includes=extra_include_paths or (), libraries=extra_library_paths or ())

    with _only_one(folder):
        return load_library(CachedBuild(folder, name, command).library(verbose), name)
