"""Reading and writing parts of variables by index, as functions."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.static.variable import setitem

__all__ = ["_getitem_static", "_setitem_static"]


def _getitem_static(x: Tensor, indices: Any) -> Tensor:
    """``x[indices]``."""
    return x[indices]


_setitem_static = setitem
