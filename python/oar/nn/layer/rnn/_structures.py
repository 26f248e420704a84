"""Nested lists, tuples and dictionaries of tensors."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops


def mapped(function: Any, *structures: Any) -> Any:
    """``function`` on the leaves of nested lists, tuples and dictionaries of one form."""
    first = structures[0]
    if isinstance(first, (list, tuple)):
        made = [mapped(function, *parts) for parts in zip(*structures)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    if isinstance(first, dict):
        return {key: mapped(function, *(s[key] for s in structures)) for key in first}
    return function(*structures)


def first(structure: Any) -> Tensor:
    while not isinstance(structure, Tensor):
        structure = next(iter(structure.values() if isinstance(structure, dict) else structure))
    return structure


def swapped(x: Tensor) -> Tensor:
    """Batch and time in each other's place, side by side in memory."""
    return ops.assign(ops.transpose(x, [1, 0, *range(2, x.ndim)]))
