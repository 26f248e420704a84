"""The optimiser whose states processes divide."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer

__all__ = ["DygraphShardingOptimizer", "DygraphShardingOptimizerV2"]


class DygraphShardingOptimizer(WrappedOptimizer):
    """An optimiser whose states processes divide by parameter. With one process it is the optimiser that it wraps.

    Args:
        optimizer: the optimiser.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import DygraphShardingOptimizer
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> inner = oar.optimizer.SGD(0.1, parameters=oar.nn.Linear(2, 1).parameters())
        >>> DygraphShardingOptimizer(inner, groups).get_lr()
        0.1
    """

    def __init__(self, optimizer: Any, hcg: Any) -> None:
        super().__init__(optimizer)
        self._hcg = hcg


class DygraphShardingOptimizerV2(DygraphShardingOptimizer):
    """An optimiser whose states processes divide by element. With one process it is the optimiser that it wraps.

    Examples:
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import DygraphShardingOptimizer
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import dygraph_sharding_optimizer
        >>> issubclass(dygraph_sharding_optimizer.DygraphShardingOptimizerV2, DygraphShardingOptimizer)
        True
    """
