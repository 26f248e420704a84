"""Recomputation inside of a program that is being captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["recomputed_in_program"]


def recomputed_in_program(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the function."""
    return function(*args, **kwargs)
