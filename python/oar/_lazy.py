"""Lazy imports: NumPy, and the parts of the package that a program may never use."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # what `typing` has too, without importing it


class LazyModule:
    """A placeholder for a module until one of its names is used. Names are cached."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str):
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


class LazyNames:
    """Names of a package that its ``__getattr__`` imports and keeps.

    Args:
        package: the package.
        modules: submodules of it.
        names: names that are elsewhere, by the module that has them: ``{"oar.autograd": ("grad",)}``.
    """

    def __init__(self, package: str, modules: tuple[str, ...], names: dict[str, tuple[str, ...]]) -> None:
        self._package = package
        self._homes: dict[str, str | None] = dict.fromkeys(modules)
        for home, members in names.items():
            self._homes.update(dict.fromkeys(members, home))

    def __contains__(self, name: str) -> bool:
        return name in self._homes

    def __iter__(self):
        return iter(self._homes)

    def load(self, name: str):
        home = self._homes[name]
        if home is None:  # the import itself puts a submodule into its package
            return importlib.import_module(f"{self._package}.{name}")
        value = getattr(importlib.import_module(home), name)
        vars(sys.modules[self._package])[name] = value
        return value

    def load_all(self) -> None:
        """For those who look through the whole package."""
        present = vars(sys.modules[self._package])
        for name in self._homes:
            if name not in present:
                self.load(name)


if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")
