"""Layers whose weights are cut into pieces for several processes. A single process has them whole."""

from oar.distributed.fleet.layers.mpu.mp_layers import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from oar.distributed.fleet.layers.mpu.mp_ops import split
from oar.distributed.fleet.layers.mpu.random import RNGStatesTracker, get_rng_state_tracker, model_parallel_random_seed

__all__ = [
    "ColumnParallelLinear",
    "ParallelCrossEntropy",
    "RNGStatesTracker",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "get_rng_state_tracker",
    "model_parallel_random_seed",
    "split",
]
