"""Saying clearly that a name is not there: not yet, or not at all."""

from __future__ import annotations

import functools
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

from oar import _C, _inner_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any

__all__ = ["MissingName", "explain_missing_names", "find_modules", "missing_error", "missing_text", "paddle_names", "speak_of"]

_library = "oar"


def speak_of(library: str) -> None:
    """Sets the name by which the program knows Oar: ``oar`` or ``paddle``."""
    global _library
    _library = library


@functools.lru_cache(maxsize=None)
def paddle_names() -> dict[str, list[str]]:
    """Paddle's public names, by module or class."""
    with open(os.path.join(os.path.dirname(__file__), "framework", "paddle_names.txt"), encoding="utf-8") as file:
        rows = [line.partition(":") for line in file.read().splitlines()]
    return {home: members.split() for home, _, members in rows}


@functools.lru_cache(maxsize=None)
def _paddles_paths() -> frozenset[str]:
    """The same as paths without the leading ``paddle.``."""
    paths = set(paddle_names())
    paths.update(f"{home}.{member}" for home, members in paddle_names().items() for member in members)
    return frozenset(path.removeprefix("paddle").removeprefix(".") for path in paths)


def _public_names(module: types.ModuleType | None) -> list[str]:
    return [name for name in dir(module) if not name.startswith("_")] if module is not None else []


def _other_place(name: str) -> str:
    """Where a name of another module is, without the leading ``oar.``; empty if nowhere."""
    sys.modules["oar"]._lazy_names.load_all()
    places = [module for module in list(sys.modules) if module.startswith("oar.") and "._" not in module
              and name in getattr(sys.modules[module], "__all__", ())]
    shortest = min(places, key=lambda place: (place.count("."), place), default="")
    return f"{shortest.removeprefix('oar.')}.{name}" if shortest else ""


def missing_text(name: str, module: types.ModuleType | None, imported: bool = False) -> str:
    """What to tell someone who asks for ``paddle.foo.bar`` or ``oar.foo.bar``, of this module.

    Args:
        name: the path.
        module: the module.
        imported: whether the name was imported as a module: then it can only have been meant for one.
    """
    path, _, last = name.rpartition(".")
    if name.partition(".")[2] in _paddles_paths():
        return f"Oar does not have {name} yet"
    library = name.partition(".")[0]
    elsewhere = _other_place(last)
    if elsewhere:
        return f"there is no {name}; did you mean {library}.{elsewhere}?"
    candidates = _public_names(module)
    if imported:
        candidates = [candidate for candidate in candidates if isinstance(getattr(module, candidate), type(sys))]
    near = _C.nearest_name(last, candidates)
    return f"there is no {name}" + (f"; did you mean {path}.{near}?" if near else "")


def _in_from_import(depth: int) -> bool:
    """Whether the code ``depth`` frames up is just now executing ``from module import name``."""
    from opcode import opmap

    frame = sys._getframe(depth)
    position = frame.f_lasti
    return 0 <= position < len(frame.f_code.co_code) and frame.f_code.co_code[position] == opmap["IMPORT_FROM"]


class MissingName(AttributeError):
    """Its text is assembled when it is read: most such errors only serve ``hasattr`` and are never shown."""

    def __init__(self, name: str, module: types.ModuleType, library: str) -> None:
        super().__init__()
        # Python would add its own suggestion by inspecting `obj`; the text has one.
        self.name, self.obj = name, None
        self._module = module
        self._path = f"{library}{module.__name__.removeprefix('oar').removeprefix('paddle')}.{name}"

    def __str__(self) -> str:
        return missing_text(self._path, self._module)

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)


# Users know it by the name that they can catch it by.
MissingName.__module__, MissingName.__qualname__ = "builtins", "AttributeError"


def missing_error(name: str, module: types.ModuleType, depth: int) -> Exception:
    """The error for a name that a module lacks.

    Args:
        name: the name.
        module: the module.
        depth: how many frames up the code is that asks. If it imports the name, this is an ImportError.
    """
    if name.startswith("_"):
        return AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
    error = MissingName(name, module, _library)
    # A submodule that is being imported is not a name of its package yet; Python finds it by itself.
    if f"{module.__name__}.{name}" not in sys.modules and _in_from_import(depth + 1):
        return ImportError(str(error), name=module.__name__)
    return error


def explain_missing_names(module: types.ModuleType) -> None:
    """Gives a module a ``__getattr__`` that finds Paddle's inner paths and reports missing names, after its own."""
    before = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:
        if before is not None:
            try:
                return before(name)
            except AttributeError:
                pass
        if not name.startswith("_"):
            found = _inner_paths.value(module.__name__.removeprefix("oar."), name)
            if found is not _inner_paths.NOT_HERE:
                return found
        raise missing_error(name, module, 2)

    module.__getattr__ = __getattr__  # type: ignore[method-assign]


class _Loader(SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        explain_missing_names(module)


class _Finder:
    """Finds the public modules of the package, and makes each report its missing names."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("oar.") or "._" in name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def find_modules() -> None:
    """From now on the modules of the package that are imported explain their missing names."""
    sys.meta_path.insert(0, _Finder)
