"""Layers and functions for quantised weights, and layers that quantisation puts into a model."""

from oar.nn.quant import qat
from oar.nn.quant.functional_layers import (
    FloatFunctionalLayer,
    add,
    concat,
    divide,
    flatten,
    matmul,
    multiply,
    reshape,
    subtract,
    transpose,
)
from oar.nn.quant.quantized_linear import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize
from oar.nn.quant.stub import QuanterStub, Stub

__all__ = [
    "FloatFunctionalLayer",
    "QuanterStub",
    "Stub",
    "add",
    "concat",
    "divide",
    "flatten",
    "llm_int8_linear",
    "matmul",
    "multiply",
    "qat",
    "reshape",
    "subtract",
    "transpose",
    "weight_dequantize",
    "weight_only_linear",
    "weight_quantize",
]
