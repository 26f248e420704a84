"""Functions that cannot be one program: Python runs at every call; its ops are queued and run as programs in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C
from oar.jit.report import telling

__all__ = ["run"]


def run(call: Callable, args: tuple, kwargs: dict, title: str) -> Any:
    """Calls it.

    The calls of kernels wait until a value is asked for or the function ends. All else happens at once, as in eager
    mode: checks, shapes, views, the tape, and whatever Python does.
    """
    return _C.run_in_segments(call, args, kwargs, title if telling() else "")
