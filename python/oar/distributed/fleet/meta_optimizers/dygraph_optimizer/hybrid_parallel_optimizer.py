"""The optimiser of a network that processes divide in several ways."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer

__all__ = ["HybridParallelOptimizer"]


class HybridParallelOptimizer(WrappedOptimizer):
    """An optimiser that adds up gradients over the processes first. With one process it is the optimiser that it wraps.

    Args:
        optimizer: the optimiser.
        hcg: the groups of this process.
        strategy: the settings of training.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.meta_optimizers import HybridParallelOptimizer
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> inner = oar.optimizer.SGD(0.1, parameters=oar.nn.Linear(2, 1).parameters())
        >>> HybridParallelOptimizer(inner, groups, fleet.DistributedStrategy()).get_lr()
        0.1
    """

    def __init__(self, optimizer: Any, hcg: Any, strategy: Any) -> None:
        super().__init__(optimizer)
        self._hcg, self._strategy = hcg, strategy
