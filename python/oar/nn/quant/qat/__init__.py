"""Layers that compute with rounded weights and inputs, for training that expects to be quantised."""

from oar.nn.quant.qat.conv import QuantedConv2D
from oar.nn.quant.qat.linear import QuantedLinear

__all__ = ["QuantedConv2D", "QuantedLinear"]
