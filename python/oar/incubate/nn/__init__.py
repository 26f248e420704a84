"""Layers and functions that do several steps of a network at once."""

from oar.incubate.nn import functional, layer
from oar.incubate.nn.layer.fused_dropout_add import FusedDropoutAdd
from oar.incubate.nn.layer.fused_linear import FusedLinear
from oar.incubate.nn.layer.fused_multi_transformer import FusedMultiTransformer
from oar.incubate.nn.layer.fused_transformer import (
    FusedBiasDropoutResidualLayerNorm,
    FusedFeedForward,
    FusedMultiHeadAttention,
    FusedTransformerEncoderLayer,
)

__all__ = [
    "FusedBiasDropoutResidualLayerNorm",
    "FusedDropoutAdd",
    "FusedFeedForward",
    "FusedLinear",
    "FusedMultiHeadAttention",
    "FusedMultiTransformer",
    "FusedTransformerEncoderLayer",
    "functional",
    "layer",
]
