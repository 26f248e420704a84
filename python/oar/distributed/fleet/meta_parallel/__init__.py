"""Networks that are cut into pieces for several processes. A single process has them whole."""

from oar.distributed.fleet.meta_parallel import sharding
from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
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
from oar.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel
from oar.distributed.fleet.meta_parallel.segment_parallel import SegmentParallel
from oar.distributed.fleet.meta_parallel.sharding_parallel import ShardingParallel
from oar.distributed.fleet.meta_parallel.tensor_parallel import TensorParallel

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
