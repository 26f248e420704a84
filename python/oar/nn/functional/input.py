"""Codes and embeddings, under Paddle's inner path."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops

__all__ = ["embedding", "embedding_renorm_", "one_hot"]


def embedding_renorm_(x: Tensor, weight: Tensor, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Shortens the rows of a table that are looked up, in place, to ``max_norm`` at most."""
    return ops.embedding_renorm_(weight, x, max_norm, norm_type)


def __getattr__(name: str) -> Any:
    from oar.nn import functional

    if name in __all__:
        return getattr(functional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
