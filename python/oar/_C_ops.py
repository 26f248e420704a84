"""Ops with positional arguments in the order of Paddle's native interface: ``_C_ops.pool2d(x, [2, 2], …)``.

Programs reach for these where the public function lacks an argument. ``oar.base.operators`` has the table.
"""

from __future__ import annotations

from collections.abc import Callable

from oar.base import operators


def __getattr__(name: str) -> Callable:
    if not name.startswith("__"):
        found = operators.find(name)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no op {name!r}.")


def __dir__() -> list[str]:
    return operators.names()
