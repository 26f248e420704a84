"""Masks and shifts, under Paddle's inner path."""

from __future__ import annotations

from typing import Any

__all__ = ["gather_tree", "sequence_mask", "temporal_shift"]


def __getattr__(name: str) -> Any:
    from oar.nn import functional

    if name in __all__:
        return getattr(functional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
