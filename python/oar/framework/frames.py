"""Whose code a file holds: the user's, or this package's."""

from __future__ import annotations

import functools
import os

__all__ = ["is_users_file"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep


@functools.lru_cache(maxsize=4096)
def is_users_file(path: str) -> bool:
    """Whether code in this file is the user's: not of this package, not of Python."""
    if path.startswith((_PACKAGE, "<frozen")):
        return False
    return not path.startswith(_PYTHON) or "site-packages" in path
