"""Reading and writing parts of variables by index, as functions."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops

__all__ = ["_getitem_static", "_setitem_static"]


def _getitem_static(x: Tensor, indices: Any) -> Tensor:
    """``x[indices]``."""
    return x[indices]


def _setitem_static(x: Tensor, indices: Any, values: Any) -> Tensor:
    """A copy of x in which ``indices`` hold the values."""
    made = ops.assign(x)
    made[indices] = values
    return made
