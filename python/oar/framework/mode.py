"""Questions that Paddle's programs ask about how calls are carried out."""

from __future__ import annotations

__all__ = ["in_dynamic_or_pir_mode", "in_pir_mode"]


def in_pir_mode() -> bool:
    """False: calls run at once."""
    return False


def in_dynamic_or_pir_mode() -> bool:
    """True: calls run at once."""
    return True
