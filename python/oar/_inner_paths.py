"""Paddle's inner paths: ``paddle.optimizer.adamw.AdamW`` is ``paddle.optimizer.AdamW``.

Programs import public functions and classes from the module that defines them in Paddle. Oar's modules are divided otherwise, so
each such path leads to the public name. The table is ``framework/paddle_paths.txt``: module, public home, names; ``name=other`` where the public name differs.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any

__all__ = ["NOT_HERE", "modules", "stand_in", "value"]

NOT_HERE = object()


@functools.lru_cache(maxsize=None)
def _public_paths() -> dict[str, dict[str, str]]:
    """For each inner module its names, each with its public path. Paths are without the leading ``oar.``"""
    table: dict[str, dict[str, str]] = {}
    with open(os.path.join(os.path.dirname(__file__), "framework", "paddle_paths.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            module, home, names = line.split(":")
            for entry in names.split():
                name, _, public = entry.partition("=")
                table.setdefault(module, {})[name] = f"{home}.{public or name}".lstrip(".")
    return table


def modules() -> list[str]:
    """The inner modules of which Oar has a name, and the packages around them, packages first."""
    there = [path for path, names in _public_paths().items() if any(value(path, name) is not NOT_HERE for name in names)]
    return sorted({".".join(parts[:count]) for parts in (path.split(".") for path in there) for count in range(1, len(parts) + 1)})


def value(module: str, name: str) -> Any:
    """What Paddle has at an inner path, or ``NOT_HERE``.

    Args:
        module: the path of the module, without the leading ``oar.``
        name: the name in it.
    """
    public = _public_paths().get(module, {}).get(name)
    if public is None or public == f"{module}.{name}":
        return sys.modules.get(f"oar.{module}.{name}", NOT_HERE)
    found: Any = sys.modules["oar"]
    for part in public.split("."):
        found = getattr(found, part, NOT_HERE)
    return found


def stand_in(path: str) -> types.ModuleType:
    """An empty module for an inner path; its names come from ``value``."""
    module = type(sys)(f"oar.{path}", "Public names under the path where Paddle defines them.")
    module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
    module.__path__ = []
    sys.modules[module.__name__] = module
    return module
