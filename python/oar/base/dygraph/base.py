"""``guard`` and its like: calls run at once with and without them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oar._creation import to_tensor
from oar._framework import get_device, set_device
from oar._grad_mode import no_grad
from oar.autograd import grad

__all__ = ["enable_dygraph", "enabled", "grad", "guard", "no_grad", "to_variable"]


@contextlib.contextmanager
def guard(place=None) -> Iterator[None]:
    """Calls inside run at once, as they do outside; new tensors are on ``place``, if one is given."""
    before = get_device()
    if place is not None:
        set_device(place if isinstance(place, str) else "cpu" if place.is_cpu_place() else place.device)
    try:
        yield
    finally:
        set_device(before)


def enabled() -> bool:
    """True: calls run at once."""
    return True


def enable_dygraph(place=None) -> None:
    """Nothing to do: calls run at once."""
    if place is not None:
        set_device(place)


def to_variable(value, name: str | None = None, zero_copy: bool | None = None, dtype=None):
    """A tensor of an array, or the tensor itself."""
    made = to_tensor(value, dtype)
    made.name = name or made.name
    return made
