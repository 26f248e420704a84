"""The largest absolute value of a tensor."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.nn.layer import Layer
from oar.quantization.factory import ObserverFactory
from oar.quantization.observers.scaled import ScaleObserver

__all__ = ["AbsmaxObserver", "AbsmaxObserverLayer"]

_LEAST = 1e-7


class AbsmaxObserver(ObserverFactory):
    """Observers that remember the largest absolute value of all tensors that they see.

    Args:
        quant_bits: the bits of an integer; (4, 3) and (5, 2) are 8-bit floats.

    Examples:
        >>> from oar.quantization.observers import AbsmaxObserver
        >>> print(AbsmaxObserver(quant_bits=8))
        AbsmaxObserver(quant_bits=8)
    """

    def __init__(self, quant_bits: Any = 8) -> None:
        super().__init__(quant_bits=quant_bits)

    def _get_class(self) -> type[AbsmaxObserverLayer]:
        return AbsmaxObserverLayer


class AbsmaxObserverLayer(ScaleObserver):
    """The observer of one tensor.

    Args:
        layer: the layer that is observed.
        quant_bits: the format.
    """

    def __init__(self, layer: Layer, quant_bits: Any = 8) -> None:
        super().__init__(layer, quant_bits)

    def forward(self, input: Tensor) -> Tensor:
        seen = ops.clip(ops.max(ops.abs(input.detach())), _LEAST)
        self._max = seen if self._max is None else ops.maximum(seen, ops.cast(self._max, input.dtype))
        return input
