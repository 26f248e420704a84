"""A linear layer whose weight and input are quantised."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.nn.quant.qat.quanted import QuantedLayer

__all__ = ["QuantedLinear"]


class QuantedLinear(QuantedLayer):
    """``nn.Linear`` of an input and a weight that pass quanters.

    Args:
        layer: the ``nn.Linear``.
        q_config: which quanters to use.

    Examples:
        >>> import oar
        >>> from oar.quantization import QAT, QuantConfig
        >>> from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
        >>> config = QuantConfig(activation=None, weight=FakeQuanterWithAbsMaxObserver())
        >>> print(QAT(config).quantize(oar.nn.Sequential(oar.nn.Linear(2, 3))))
        Sequential(
          (0): QuantedLinear(
            (weight_quanter): FakeQuanterWithAbsMaxObserverLayer()
          )
        )
    """

    def forward(self, input: Tensor) -> Tensor:
        x, weight = self._quantized(input)
        return ops.linear(x, weight, self.bias)
