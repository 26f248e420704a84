"""What observers of absolute values share."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.nn.layer import Layer
from oar.quantization.base_observer import BaseObserver

__all__ = ["ScaleObserver"]


class ScaleObserver(BaseObserver):
    """An observer whose scales are the largest absolute values that it has seen. A subclass computes ``_max``.

    Args:
        layer: the layer that is observed.
        quant_bits: the format: bits of an integer, or (4, 3) and (5, 2) for 8-bit floats.
    """

    def __init__(self, layer: Layer, quant_bits: Any = 8) -> None:
        super().__init__()
        self._quant_bits = quant_bits
        self._max: Tensor | None = None

    def bit_length(self) -> Any:
        """The format."""
        return self._quant_bits

    def quant_axis(self) -> int:
        """-1: the scales tell by their shape."""
        return -1

    def cal_thresholds(self) -> None:
        """Nothing: the scales are the largest values themselves."""

    def scales(self) -> Tensor | None:
        """The largest absolute values; None if no data were seen."""
        return self._max

    def zero_points(self) -> Tensor | None:
        """Zeros in the shape of the scales."""
        return None if self._max is None else ops.zeros_like(self._max)
