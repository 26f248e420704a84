"""The argument ``reduction`` of losses."""

from __future__ import annotations

_REDUCTIONS = ("sum", "mean", "none")


def check_reduction(layer: str, reduction: str) -> str:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{layer}: reduction should be 'sum', 'mean' or 'none', but received {reduction!r}.")
    return reduction
