"""Layers on sequences of different lengths, under Paddle's inner path."""

from oar.nn.functional import sequence_mask
from oar.static.nn.sequences import (
    sequence_conv,
    sequence_expand,
    sequence_first_step,
    sequence_last_step,
    sequence_pool,
    sequence_softmax,
)

__all__ = [
    "sequence_conv",
    "sequence_expand",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_mask",
    "sequence_pool",
    "sequence_softmax",
]
