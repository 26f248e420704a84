"""Recomputation inside of a program that is being captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import _C

__all__ = ["recomputed_in_program"]


class _InBackward:
    """The values of calls in it are computed again by the program's backward half."""

    def __enter__(self) -> None:
        _C.begin_recomputed()

    def __exit__(self, *exc: object) -> None:
        _C.end_recomputed()


def recomputed_in_program(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the function; the derivative of its calls computes again what it needs of them.

    A program of ``oar.static`` is differentiated as a whole, later; there the function is just called.
    """
    if _C.static_active():
        return function(*args, **kwargs)
    with _InBackward():
        return function(*args, **kwargs)
