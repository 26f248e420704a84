"""``guard`` and its like: calls run at once with and without them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from oar import _C
from oar._creation import to_tensor
from oar._framework import in_dynamic_mode
from oar._places import set_device
from oar._grad_mode import no_grad
from oar.autograd import grad
from oar.base.wrapped_decorator import wrap_decorator
from oar.framework.mode import in_declarative_mode, in_to_static_mode
from oar.static.program import disable_static, enable_static, mode

__all__ = [
    "disable_dygraph",
    "enable_dygraph",
    "enabled",
    "grad",
    "guard",
    "in_declarative_mode",
    "in_to_static_mode",
    "no_grad",
    "switch_to_static_graph",
    "to_variable",
]


@contextlib.contextmanager
def guard(place=None) -> Iterator[None]:
    """Calls inside run at once; new tensors are on ``place``, if one is given."""
    before = _C.get_device()
    if place is not None:
        set_device(place if isinstance(place, str) else "cpu" if place.is_cpu_place() else place.device)
    try:
        with mode(static=False):
            yield
    finally:
        set_device(before)


def enabled() -> bool:
    """Whether calls run at once."""
    return in_dynamic_mode()


def enable_dygraph(place=None) -> None:
    """From now on calls run at once."""
    disable_static(place)


def disable_dygraph() -> None:
    """From now on calls are written down in a program."""
    enable_static()


@wrap_decorator
def switch_to_static_graph(func):
    """A function that runs in static mode."""

    def in_static_mode(*args, **kwargs):
        with mode(static=True):
            return func(*args, **kwargs)

    return in_static_mode


def to_variable(value, name: str | None = None, zero_copy: bool | None = None, dtype=None):
    """A tensor of an array, or the tensor itself."""
    made = to_tensor(value, dtype)
    made.name = name or made.name
    return made
