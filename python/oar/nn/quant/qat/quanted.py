"""What layers with a quantised weight share."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn.layer import Layer
from oar.nn.quant.format import ConvertibleQuantedLayer

__all__ = ["QuantedLayer"]


class QuantedLayer(ConvertibleQuantedLayer):
    """A layer with a weight, a bias, and a quanter for the weight and for the input.

    Args:
        layer: the layer to replace; its parameters are used, not copied.
        q_config: which quanters to use: a ``SingleLayerConfig``.
    """

    def __init__(self, layer: Layer, q_config: Any) -> None:
        super().__init__()
        self.weight: Any = layer.weight
        self.bias: Any = layer.bias
        self.weight_quanter = None if q_config.weight is None else q_config.weight._instance(layer)
        self.activation_quanter = None if q_config.activation is None else q_config.activation._instance(layer)

    def _quantized(self, input: Tensor) -> tuple[Tensor, Tensor]:
        """The input and the weight as their quanters return them."""
        x = input if self.activation_quanter is None else self.activation_quanter(input)
        weight = self.weight if self.weight_quanter is None else self.weight_quanter(self.weight)
        return x, weight

    def weights_to_quanters(self) -> list[tuple[str, str]]:
        """The weight and its quanter."""
        return [("weight", "weight_quanter")]

    def activation_quanters(self) -> list[str]:
        """The quanter of the input."""
        return ["activation_quanter"]
