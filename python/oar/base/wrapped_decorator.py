"""Decorators that keep the signature of what they decorate."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(decorator_func: Callable) -> Callable:
    """A decorator that does as ``decorator_func`` and leaves name, documentation and signature as they are."""

    @functools.wraps(decorator_func)
    def decorate(func: Callable) -> Callable:
        return functools.wraps(func)(decorator_func(func))

    return decorate


def signature_safe_contextmanager(func: Callable) -> Any:
    """A context manager from a generator function, whose signature stays."""
    return contextlib.contextmanager(func)
