"""What a captured function does on the host, to be done again after every run of its program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["defer"]


def defer(action: Callable[[], Any], owner: Any) -> bool:
    """Whether the action is deferred to the end of a run. False: the caller does it itself.

    While a function is captured, the interpreter takes the place of this function: it takes note of the action and of the
    object that it changes, which must not be read any more in the same call.
    """
    return False
