"""What the transforms share, and the switch for primitive ops."""

from __future__ import annotations

_enabled = False


def as_tensors(xs):
    """A tensor as a tuple of one; several as a tuple."""
    if xs is None:
        return None
    return tuple(xs) if isinstance(xs, (list, tuple)) else (xs,)


def prim_enabled() -> bool:
    """The last setting. Programs of Oar can always be decomposed into primitive ops.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.incubate.autograd.prim_enabled()
        False
    """
    return _enabled


def enable_prim() -> None:
    """Asks for programs of primitive ops. Programs can always be taken apart into them, so nothing else changes.

    Examples:
        >>> import oar
        >>> oar.incubate.autograd.enable_prim()
        >>> oar.incubate.autograd.prim_enabled()
        True
        >>> oar.incubate.autograd.disable_prim()
    """
    global _enabled
    _enabled = True


def disable_prim() -> None:
    """Takes back ``enable_prim``.

    Examples:
        >>> import oar
        >>> oar.incubate.autograd.disable_prim()
        >>> oar.incubate.autograd.prim_enabled()
        False
    """
    global _enabled
    _enabled = False
