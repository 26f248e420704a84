"""Optimisers of several processes. With one process each is the optimiser that it wraps."""

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer import DygraphShardingOptimizer
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_gradscaler import HybridParallelGradScaler
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_optimizer import HybridParallelOptimizer

__all__ = ["DygraphShardingOptimizer", "HybridParallelGradScaler", "HybridParallelOptimizer"]
