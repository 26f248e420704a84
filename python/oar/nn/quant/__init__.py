"""Layers and functions for quantised weights."""

from oar.nn.quant.quantized_linear import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize
from oar.nn.quant.stub import Stub

__all__ = ["Stub", "llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"]
