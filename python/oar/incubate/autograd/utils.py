"""What the transforms share, and the switch for primitive ops."""

from __future__ import annotations

_enabled = False


def as_tensors(xs):
    """A tensor as a tuple of one; several as a tuple."""
    if xs is None:
        return None
    return tuple(xs) if isinstance(xs, (list, tuple)) else (xs,)


def prim_enabled() -> bool:
    """What was last asked for. Programs of Oar can always be taken apart into primitive ops."""
    return _enabled


def enable_prim() -> None:
    global _enabled
    _enabled = True


def disable_prim() -> None:
    global _enabled
    _enabled = False
