"""Questions that Paddle's programs ask about how calls are carried out."""

from __future__ import annotations

from oar._framework import in_dynamic_mode

__all__ = ["in_dynamic_or_pir_mode", "in_pir_mode", "use_pir_api"]


def in_pir_mode() -> bool:
    """Whether calls are written down in a program."""
    return not in_dynamic_mode()


def in_dynamic_or_pir_mode() -> bool:
    """True: either calls run at once, or they go to a program."""
    return True


def use_pir_api() -> bool:
    """True: there is one kind of program."""
    return True
