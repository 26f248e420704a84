"""Optimisers of several processes."""

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import HybridParallelOptimizer

__all__ = ["HybridParallelOptimizer"]
