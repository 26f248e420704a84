"""Optimisers of several processes."""

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import (
    DygraphShardingOptimizer,
    HybridParallelGradScaler,
    HybridParallelOptimizer,
)

__all__ = ["DygraphShardingOptimizer", "HybridParallelGradScaler", "HybridParallelOptimizer"]
