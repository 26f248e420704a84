"""Layers and functions that exist for one, two and three spatial axes are written once, as a function of their number.

>>> def _pool(axes):
...     class Pool(Layer):
...         '''Pooling over {axes}.'''
...     return Pool
>>> Pool1D, Pool2D, Pool3D = for_axes("Pool{n}D", _pool)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from oar._spelling import spelled
from oar.nn.functional._window import FORMATS


class _Sizes:
    """``{sizes:8}`` of a text: the size 8 for each axis, separated by commas."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __format__(self, size: str) -> str:
        return ", ".join([size] * self._count)


class Axes:
    """What a layer's or function's signature and text need to know about its spatial axes."""

    _TEXTS = {
        1: ("one spatial axis", "an integer", "length", "sequences ``[N, C, L]``", "[left, right]"),
        2: ("two spatial axes", "an integer or ``(height, width)``", "kh, kw", "images ``[N, C, H, W]``",
            "[left, right, top, bottom]"),
        3: ("three spatial axes", "an integer or ``(depth, height, width)``", "kd, kh, kw",
            "volumes ``[N, C, D, H, W]``", "[left, right, top, bottom, front, back]"),
    }  # fmt: skip

    def __init__(self, count: int) -> None:
        self.count = count
        self.first, self.last = FORMATS[count]
        axes, size, kernel, inputs, sides = self._TEXTS[count]
        self._fields = {
            "n": count, "axes": axes, "size": size, "kernel": kernel, "inputs": inputs, "sides": sides,
            "formats": f"``'{self.first}'`` or ``'{self.last}'``", "last": self.last, "sizes": _Sizes(count),
        }  # fmt: skip

    def text(self, template: str) -> str:
        return template.format(**self._fields)


def for_axes(name: str, template: Callable[[Axes], Any], counts: Sequence[int] = (1, 2, 3)) -> Any:
    """The classes or functions that ``template`` returns for each number of axes.

    Args:
        name: the name of each, with ``{n}`` for the number.
        template: takes ``Axes`` and returns a class or a function. ``Axes.text`` fills in its docstring.
        counts: the numbers.

    Returns:
        a list of classes or functions.
    """
    made = []
    for count in counts:
        axes = Axes(count)
        one = template(axes)
        _rename(one, axes.text(name))
        one.__doc__ = axes.text(one.__doc__)
        made.append(spelled(one) if isinstance(one, FunctionType) else one)
    return made


def _rename(one: Any, name: str) -> None:
    one.__name__ = one.__qualname__ = name
    if isinstance(one, FunctionType):  # error messages and tracebacks find a function by the name in its code
        one.__code__ = one.__code__.replace(co_name=name)
        return
    for member in vars(one).values():
        if isinstance(member, FunctionType):  # `inspect` finds the class of a method by this
            member.__qualname__ = f"{name}.{member.__name__}"
