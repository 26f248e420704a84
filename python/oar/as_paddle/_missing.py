"""Saying clearly that Oar does not have a name yet."""

from __future__ import annotations

import dis
import sys
import types
from typing import Any

__all__ = ["explain_missing_names", "missing_error", "missing_text"]

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]
_MARK = "_oar_explains_missing_names"


def missing_text(name: str) -> str:
    """What to tell someone who asks for ``paddle.foo.bar``."""
    return f"Oar does not have {name} yet"


def _in_from_import(depth: int) -> bool:
    """Whether the code ``depth`` frames up is just now executing ``from module import name``."""
    frame = sys._getframe(depth)
    position = frame.f_lasti
    return 0 <= position < len(frame.f_code.co_code) and frame.f_code.co_code[position] == _IMPORT_FROM


def missing_error(name: str, module: types.ModuleType, depth: int) -> Exception:
    """The error for ``name``: an ImportError when the code ``depth`` frames up imports it, else AttributeError."""
    text = missing_text(name)
    if _in_from_import(depth + 1):
        return ImportError(text, name=module.__name__)
    return AttributeError(text)


def explain_missing_names(module: types.ModuleType) -> None:
    """Lets ``module`` explain missing names, by the name that a Paddle program uses."""
    if vars(module).get(_MARK) or not module.__name__.startswith("oar"):
        return
    before = vars(module).get("__getattr__")
    public = "paddle" + module.__name__.removeprefix("oar")

    def __getattr__(name: str) -> Any:
        if before is not None:
            try:
                return before(name)
            except AttributeError:
                pass
        if name.startswith("__"):
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        raise missing_error(f"{public}.{name}", module, 2)

    module.__getattr__ = __getattr__
    setattr(module, _MARK, True)
