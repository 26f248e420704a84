"""Networks that are cut into pieces for several processes. A single process has them whole."""

from oar.distributed.fleet.meta_parallel import sharding
from oar.distributed.fleet.meta_parallel.meta_parallel_base import (
    MetaParallelBase,
    PipelineParallel,
    SegmentParallel,
    ShardingParallel,
    TensorParallel,
)
from oar.distributed.fleet.meta_parallel.parallel_layers import (
    ColumnParallelLinear,
    LayerDesc,
    ParallelCrossEntropy,
    PipelineLayer,
    RNGStatesTracker,
    RowParallelLinear,
    SharedLayerDesc,
    VocabParallelEmbedding,
    get_rng_state_tracker,
    model_parallel_random_seed,
)

__all__ = [
    "ColumnParallelLinear",
    "LayerDesc",
    "MetaParallelBase",
    "ParallelCrossEntropy",
    "PipelineLayer",
    "PipelineParallel",
    "RNGStatesTracker",
    "RowParallelLinear",
    "SegmentParallel",
    "ShardingParallel",
    "SharedLayerDesc",
    "TensorParallel",
    "VocabParallelEmbedding",
    "get_rng_state_tracker",
    "model_parallel_random_seed",
    "sharding",
]
