"""Run programs written for Paddle, unchanged: ``python -m oar.as_paddle train.py``.

``install()`` makes ``import paddle`` import Oar. Every ``paddle.x.y`` is the module ``oar.x.y`` itself, under a
second name, so that classes, ``isinstance`` and pickles agree whichever name a program uses. Only the topmost
module is a separate object, because ``paddle.__version__`` is the version of the mirrored Paddle.

Child processes find the same through ``PYTHONPATH``: the folder ``shim`` holds a package ``paddle`` that calls
``install()``. It also holds a package ``visualdl``, whose ``LogWriter`` is that of ``oar.board`` unless VisualDL is installed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

from oar import _C, _inner_paths
from oar._missing import explain_missing_names, missing_error, missing_text, speak_of

__all__ = ["PADDLE_VERSION", "install"]

PADDLE_VERSION = "3.3.1"  # whose names and meaning Oar mirrors
PADDLE_COMMIT = "7688495538f4d6c1893f084dd238a402e8f68ab6"  # of that release
_SHIM = str(Path(__file__).parent / "shim")
_PACKAGE_ROOT = str(Path(__file__).parent.parent.parent)


class _Facade(types.ModuleType):
    """The module ``paddle``: everything that ``oar`` has, with its own version."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("__"):
            setattr(sys.modules["oar"], name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if not name.startswith("__") and hasattr(sys.modules["oar"], name):
            delattr(sys.modules["oar"], name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'paddle' has no attribute '{name}'")
        try:
            value = getattr(sys.modules["oar"], name)
        except AttributeError:
            raise missing_error(name, self, 2) from None
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted(set(dir(sys.modules["oar"])) | set(self.__dict__))


class _AliasLoader(importlib.abc.InspectLoader):
    """Loads ``paddle.x`` by importing ``oar.x`` and giving out that module. ``python -m paddle.x`` runs the code of ``oar.x``."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        sys.modules[name] = importlib.import_module("oar" + name.removeprefix("paddle"))

    def get_source(self, fullname: str) -> str | None:
        return self._real(fullname).get_source("oar" + fullname.removeprefix("paddle"))

    def get_code(self, fullname: str) -> types.CodeType | None:
        return self._real(fullname).get_code("oar" + fullname.removeprefix("paddle"))

    def _real(self, fullname: str) -> importlib.abc.InspectLoader:
        spec = importlib.util.find_spec("oar" + fullname.removeprefix("paddle"))
        assert spec is not None and isinstance(spec.loader, importlib.abc.InspectLoader)
        return spec.loader


def _spec_of(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # ValueError: a module that was made without a spec
        return None


class _AliasFinder(importlib.abc.MetaPathFinder):
    """Finds ``paddle.x`` wherever ``oar.x`` is."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith("paddle."):
            return None
        real = "oar" + fullname.removeprefix("paddle")
        origin = _spec_of(real)
        if origin is None and real not in sys.modules:
            parent = sys.modules.get(real.rpartition(".")[0])
            raise ModuleNotFoundError(missing_text(fullname, parent, imported=True), name=fullname)
        is_package = origin is not None and origin.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _AliasLoader(), is_package=is_package)


def _version() -> types.ModuleType:
    """``oar.version`` once more, as a module of its own that stands for Paddle's version."""
    spec = importlib.util.spec_from_file_location("paddle.version", importlib.import_module("oar.version").__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.stand_for(PADDLE_VERSION, PADDLE_COMMIT)
    return module


def _make_facade() -> _Facade:
    oar = importlib.import_module("oar")
    facade = _Facade("paddle", oar.__doc__)
    own = facade.__dict__
    own.update({name: value for name, value in vars(oar).items() if not name.startswith("__")})
    own["__path__"] = oar.__path__
    own["__file__"] = oar.__file__
    own["__package__"] = "paddle"
    own["__version__"] = PADDLE_VERSION
    own["__git_commit__"] = PADDLE_COMMIT
    own["version"] = _version()
    own["paddle"] = facade
    own["__spec__"] = importlib.machinery.ModuleSpec("paddle", None, is_package=True)
    own["__all__"] = oar.__all__
    return facade


def _prepend_to_python_path(*folders: str) -> None:
    listed = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    wanted = [folder for folder in folders if folder not in listed]
    os.environ["PYTHONPATH"] = os.pathsep.join(wanted + listed)


def _stand_in_for_inner_modules() -> None:
    """Have modules for Paddle's inner paths. From the start, because an import would put the module in the place of a function of its
    name, such as ``nn.utils.clip_grad_norm_``."""
    for path in _inner_paths.modules():
        name = f"oar.{path}"
        if name not in sys.modules and _spec_of(name) is None:
            explain_missing_names(_inner_paths.stand_in(path))


def _module_to_run() -> str | None:
    """The module of ``python -m module`` while Python looks for it: it must not be loaded yet."""
    words = sys.orig_argv
    return words[words.index("-m") + 1] if sys.argv[:1] == ["-m"] and "-m" in words[:-1] else None


def install() -> types.ModuleType:
    """Make ``import paddle`` give Oar, here and in child processes. Returns the module ``paddle``."""
    present = sys.modules.get("paddle")
    if isinstance(present, _Facade):
        return present
    foreign = present is not None and not str(getattr(present, "__file__", "")).startswith(_SHIM)
    if foreign:
        raise RuntimeError("paddle has been imported already; call oar.as_paddle.install() before.")
    _prepend_to_python_path(_SHIM, _PACKAGE_ROOT)
    if _SHIM not in sys.path:  # Spawned processes get this list, regardless of PYTHONPATH.
        sys.path.insert(1, _SHIM)
    _C.set_library_name("paddle")
    sys.modules["oar"]._lazy_names.load_all()  # each module has a second name from the start
    _stand_in_for_inner_modules()
    facade = _make_facade()
    sys.modules["paddle"] = facade
    sys.meta_path.insert(0, _AliasFinder())
    speak_of("paddle")
    run = _module_to_run()
    for name, module in list(sys.modules.items()):
        alias = "paddle" + name.removeprefix("oar")
        if name.startswith("oar.") and isinstance(module, types.ModuleType) and (alias != run or hasattr(module, "__path__")):
            sys.modules[alias] = module
    sys.modules["paddle.version"] = facade.version
    return facade
