"""Questions that Paddle's programs ask about how calls are carried out."""

from __future__ import annotations

from oar import _C
from oar._framework import in_dynamic_mode

__all__ = ["in_declarative_mode", "in_dynamic_or_pir_mode", "in_pir_mode", "in_to_static_mode", "use_pir_api"]


def in_pir_mode() -> bool:
    """Whether calls are written down in a program."""
    return not in_dynamic_mode()


def in_dynamic_or_pir_mode() -> bool:
    """True: either calls run at once, or they go to a program."""
    return True


def use_pir_api() -> bool:
    """True: there is one kind of program."""
    return True


def in_to_static_mode() -> bool:
    """Whether a function is being captured by ``jit.to_static``."""
    return _C.is_capturing() and in_dynamic_mode()


in_declarative_mode = in_to_static_mode
