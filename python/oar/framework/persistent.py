"""Tensors that live on from step to step, in eager and in static mode."""

from __future__ import annotations

from collections.abc import Callable

import oar
from oar._C import Tensor

__all__ = ["persistent"]


def persistent(make: Callable[[], Tensor], name: str) -> Tensor:
    """The result of ``make``, under this name. In static mode the startup program computes it, before the first run."""
    if oar.in_dynamic_mode():
        tensor = make()
        tensor.name = name
    else:
        from oar.static.states import make_state

        tensor = make_state(make, name)
    tensor.persistable = True
    return tensor
