"""Codes and embeddings, under Paddle's inner path."""

from __future__ import annotations

from typing import Any

__all__ = ["embedding", "one_hot"]


def __getattr__(name: str) -> Any:
    from oar.nn import functional

    if name in __all__:
        return getattr(functional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
