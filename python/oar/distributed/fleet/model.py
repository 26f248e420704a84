"""``distributed_model`` and the networks it makes, by the path that Paddle's scripts use."""

from oar.distributed.fleet.meta_parallel import PipelineLayer, PipelineParallel, SegmentParallel, ShardingParallel, TensorParallel
from oar.distributed.fleet.optimizer import distributed_model

__all__ = ["PipelineLayer", "PipelineParallel", "SegmentParallel", "ShardingParallel", "TensorParallel", "distributed_model"]
