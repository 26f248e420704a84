"""Layers that exist for one, two and three spatial axes are written once, as a function of their number.

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

from oar.nn.functional._window import FORMATS


class _Sizes:
    """``{sizes:8}`` of a text: the size 8 for each axis, separated by commas."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __format__(self, size: str) -> str:
        return ", ".join([size] * self._count)


class Axes:
    """What a layer's signature and text need to know about its spatial axes."""

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
    """The classes that ``template`` returns for each number of axes.

    Args:
        name: the name of each, with ``{n}`` for the number.
        template: takes ``Axes`` and returns a class. ``Axes.text`` fills in its docstring.
        counts: the numbers.

    Returns:
        a list of classes.
    """
    layers = []
    for count in counts:
        axes = Axes(count)
        layer = template(axes)
        layer.__name__ = layer.__qualname__ = axes.text(name)
        layer.__doc__ = axes.text(layer.__doc__)
        for member in vars(layer).values():
            if isinstance(member, FunctionType):  # `inspect` finds the class of a method by this
                member.__qualname__ = f"{layer.__name__}.{member.__name__}"
        layers.append(layer)
    return layers
