"""What the functions here share: names and parameters of a layer, its activation."""

from __future__ import annotations

import copy
from typing import Any

import oar
from oar._C import Tensor
from oar.framework import ParamAttr, unique_name
from oar.framework.parameter import Parameter, make_parameter
from oar.static.weight_norm import WeightNormParamAttr, normalised_weight

__all__ = ["LayerMaker", "sizes", "static_only"]


def static_only(function: str) -> None:
    """Raises in eager mode: a function that creates parameters would create new ones at every call."""
    if oar.in_dynamic_mode():
        raise RuntimeError(f"static.nn.{function} creates parameters of a program. Call enable_static() first.")


def sizes(value: Any, count: int) -> list[int]:
    """One number for each of ``count`` axes."""
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)] * count


class LayerMaker:
    """Makes the parameters of one call, named after it: ``fc_0.w_0``."""

    _names: dict[str, int] | None = None  # how often each was given; None: a name that the user gave may come again

    def __init__(self, kind: str, name: str | None, dtype: Any) -> None:
        static_only(kind)
        self.name = name or unique_name.generate(kind)
        self._names = None if name else {}
        self.dtype = dtype

    def parameter(self, shape: list[int], attr: Any, is_bias: bool = False, default: Any = None,
                  dtype: Any = None) -> Any:
        """A parameter as specified by ``attr``, of the layer's dtype unless another is given; None if ``attr`` is False."""
        dtype = dtype or self.dtype
        attr = ParamAttr._to_attr(attr)
        if attr is False:
            return None
        attr = copy.copy(attr)
        attr.name = attr.name or self._named(f"{self.name}.{'b' if is_bias else 'w'}")
        if isinstance(attr, WeightNormParamAttr):
            return normalised_weight(shape, dtype, attr, default)
        return make_parameter(shape, dtype, attr, default, is_bias)

    def _named(self, key: str) -> str:
        return unique_name.generate(key) if self._names is None else unique_name.generate_within(self._names, key)

    def statistic(self, shape: list[int], value: float, name: str | None) -> Parameter:
        """A tensor that the program keeps but does not train."""
        attr = ParamAttr(name, oar.nn.initializer.Constant(value), trainable=False)
        return self.parameter(shape, attr)

    @staticmethod
    def activated(x: Tensor, activation: str | None) -> Tensor:
        """``x`` through an activation of ``oar.nn.functional`` by name."""
        if activation is None:
            return x
        function = getattr(oar.nn.functional, activation, None) or getattr(oar, activation, None)
        if function is None:
            raise ValueError(f"there is no activation {activation!r} in oar.nn.functional.")
        return function(x)
