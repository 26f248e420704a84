"""NumPy, imported when it is first used: a program that never asks for an array does not pay for it."""

from __future__ import annotations

import importlib


class LazyModule:
    """Stands for a module until one of its names is asked for. A name found is kept."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str):
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


np = LazyModule("numpy")
