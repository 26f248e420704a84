"""Rounding with a scale that follows the largest absolute values."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor, ops
from oar.nn.initializer import Constant
from oar.nn.layer import Layer
from oar.nn.quant._rounding import fake_quantized, largest_of
from oar.framework import ParamAttr
from oar.quantization.base_quanter import BaseQuanter
from oar.quantization.factory import QuanterFactory
from oar.utils import unique_name

__all__ = ["FakeQuanterWithAbsMaxObserver", "FakeQuanterWithAbsMaxObserverLayer"]


class FakeQuanterWithAbsMaxObserver(QuanterFactory):
    """Quanters that round to integers, with a scale that is the moving average of the largest absolute values.

    With ``state = rate * state + 1`` and ``accum = rate * accum + max(abs(x))`` for each tensor that is seen in training, the
    scale is ``accum / state``, and x becomes ``round(x / scale * range) * scale / range`` where range is the largest integer.
    The gradient passes as if nothing was rounded.

    Args:
        moving_rate: the rate of the average.
        bit_length: the bits of an integer.
        dtype: the dtype of the tensors.
        name: a prefix for the names of the scale and its sums.

    Examples:
        >>> from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
        >>> print(FakeQuanterWithAbsMaxObserver(moving_rate=0.99))
        FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.99,bit_length=8,dtype=float32)
    """

    def __init__(
        self, moving_rate: float = 0.9, bit_length: int = 8, dtype: str = "float32", name: str | None = None
    ) -> None:
        super().__init__(name=name, moving_rate=moving_rate, bit_length=bit_length, dtype=dtype)

    def _get_class(self) -> type[FakeQuanterWithAbsMaxObserverLayer]:
        return FakeQuanterWithAbsMaxObserverLayer


class FakeQuanterWithAbsMaxObserverLayer(BaseQuanter):
    """The quanter of one tensor.

    Args:
        layer: the layer that the tensor belongs to.
        name: a prefix for the names of the scale and its sums.
        moving_rate: the rate of the average.
        bit_length: the bits of an integer.
        dtype: the dtype of the tensors.
    """

    def __init__(
        self,
        layer: Layer,
        name: str | None = None,
        moving_rate: float = 0.9,
        bit_length: int = 8,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self._moving_rate = moving_rate
        self._bit_length = bit_length
        self._largest, _ = largest_of(bit_length)
        prefix = name or "quant_dequant"
        self._scale = self._number(f"{prefix}.scale", 0.001, dtype)
        self._state = self._number(f"{prefix}.state", 1.0, dtype)
        self._accum = self._number(f"{prefix}.accum", 1.0, dtype)

    def _number(self, prefix: str, value: float, dtype: str) -> Any:
        attributes = ParamAttr(name=unique_name.generate(prefix), initializer=Constant(value), trainable=False)
        return self.create_parameter([1], attributes, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            seen = ops.cast(ops.max(ops.abs(input.detach())), self._accum.dtype)
            ops.copy_into(self._state, self._state * self._moving_rate + 1.0)
            ops.copy_into(self._accum, self._accum * self._moving_rate + seen)
            ops.copy_into(self._scale, self._accum / self._state)
        return fake_quantized(input, ops.cast(self._scale.detach(), input.dtype), self._largest)

    def bit_length(self) -> int:
        """The bits of an integer."""
        return self._bit_length

    def quant_axis(self) -> int:
        """-1: one scale for the whole tensor."""
        return -1

    def scales(self) -> Tensor:
        """What the largest integer stands for."""
        return self._scale

    def zero_points(self) -> None:
        """None: 0 stands for 0."""
        return None
