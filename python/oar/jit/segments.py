"""Functions that cannot be one program: Python runs at every call; its ops are queued and run as programs in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C
from oar.jit.report import telling

__all__ = ["run"]


def run(call: Callable, args: tuple, kwargs: dict, title: str) -> tuple[Any, str]:
    """Calls it; returns the result and how it ran, as named by ``capture_counts``.

    Kernel calls are queued until a value is read or the function ends. All else happens at once, as in eager
    mode: checks, shapes, views, the tape, and whatever Python does. Only the CPU's kernels are queued.
    """
    if _C.get_device() != "cpu":
        return call(*args, **kwargs), "eager"
    return _C.run_in_segments(call, args, kwargs, title if telling() else ""), "segments"
