"""Saying clearly that a name is not there: not yet, or not at all."""

from __future__ import annotations

import dis
import functools
import os
import sys
import types
from typing import Any

from oar import _C

__all__ = [
    "explain_missing_names",
    "explain_missing_names_everywhere",
    "missing_error",
    "missing_text",
    "paddle_names",
]

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]
_MARK = "_oar_explains_missing_names"


@functools.lru_cache(maxsize=None)
def paddle_names() -> dict[str, list[str]]:
    """Paddle's public names, by module or class."""
    with open(os.path.join(os.path.dirname(__file__), "paddle_names.txt"), encoding="utf-8") as file:
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
    places = [module for module in list(sys.modules) if module.startswith("oar.") and "._" not in module
              and name in getattr(sys.modules[module], "__all__", ())]
    shortest = min(places, key=lambda place: (place.count("."), place), default="")
    return f"{shortest.removeprefix('oar.')}.{name}" if shortest else ""


def missing_text(name: str, module: types.ModuleType | None) -> str:
    """What to tell someone who asks for ``paddle.foo.bar`` or ``oar.foo.bar``, of this module."""
    path, _, last = name.rpartition(".")
    if name.partition(".")[2] in _paddles_paths():
        return f"Oar does not have {name} yet"
    library = name.partition(".")[0]
    elsewhere = _other_place(last)
    if elsewhere:
        return f"there is no {name}; did you mean {library}.{elsewhere}?"
    near = _C.nearest_name(last, _public_names(module))
    return f"there is no {name}" + (f"; did you mean {path}.{near}?" if near else "")


def _in_from_import(depth: int) -> bool:
    """Whether the code ``depth`` frames up is just now executing ``from module import name``."""
    frame = sys._getframe(depth)
    position = frame.f_lasti
    return 0 <= position < len(frame.f_code.co_code) and frame.f_code.co_code[position] == _IMPORT_FROM


def missing_error(name: str, module: types.ModuleType, depth: int) -> Exception:
    """The error for ``name``: an ImportError when the code ``depth`` frames up imports it, else AttributeError."""
    text = missing_text(name, module)
    if _in_from_import(depth + 1):
        return ImportError(text, name=module.__name__)
    error = AttributeError(text)
    # Python would add a suggestion of its own, by looking at `obj`; the text has one.
    error.name, error.obj = name.rpartition(".")[2], None
    return error


def explain_missing_names(module: types.ModuleType, library: str) -> None:
    """Let ``module`` tell of names it lacks; ``library`` is the name by which the program knows Oar."""
    known = vars(module).get(_MARK)
    if known is not None:
        known["library"] = library
        return
    if module.__name__.partition(".")[0] != "oar" or "._" in module.__name__:
        return  # not ours, or not for users
    before = vars(module).get("__getattr__")
    spoken = {"library": library}

    def __getattr__(name: str) -> Any:
        if before is not None:
            try:
                return before(name)
            except AttributeError:
                pass
        if name.startswith("_"):
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        public = spoken["library"] + module.__name__.removeprefix("oar")
        raise missing_error(f"{public}.{name}", module, 2)

    module.__getattr__ = __getattr__
    setattr(module, _MARK, spoken)


def explain_missing_names_everywhere(library: str) -> None:
    """The same for every module of Oar that has been imported."""
    for name, module in list(sys.modules.items()):
        if (name == "oar" or name.startswith("oar.")) and isinstance(module, types.ModuleType):
            explain_missing_names(module, library)
