"""A convolution whose weight and input are quantised."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.conv import convolve
from oar.nn.quant.qat.quanted import QuantedLayer

__all__ = ["QuantedConv2D"]


class QuantedConv2D(QuantedLayer):
    """``nn.Conv2D`` of an input and a weight that pass quanters.

    Args:
        layer: the ``nn.Conv2D``.
        q_config: which quanters to use.

    Examples:
        >>> import oar
        >>> from oar.quantization import QAT, QuantConfig
        >>> from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
        >>> config = QuantConfig(activation=None, weight=FakeQuanterWithAbsMaxObserver())
        >>> print(QAT(config).quantize(oar.nn.Sequential(oar.nn.Conv2D(1, 2, 3))))
        Sequential(
          (0): QuantedConv2D(
            (weight_quanter): FakeQuanterWithAbsMaxObserverLayer()
          )
        )
    """

    def __init__(self, layer: Any, q_config: Any) -> None:
        super().__init__(layer, q_config)
        self._stride, self._dilation, self._groups = layer._stride, layer._dilation, layer._groups
        self._padding, self._padding_mode = layer._padding, layer._padding_mode
        self._inner_padding, self._border = layer._inner_padding, layer._border
        self._data_format = layer._data_format

    def forward(self, input: Tensor) -> Tensor:
        x, weight = self._quantized(input)
        return convolve(self, F.conv2d, x, weight)
