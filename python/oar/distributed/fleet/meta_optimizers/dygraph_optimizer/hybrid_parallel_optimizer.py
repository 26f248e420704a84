"""The optimiser of a network that processes divide in several ways."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.base.topology import ParallelMode
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer import DygraphShardingOptimizer
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_clip import HybridParallelClipGrad
from oar.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients, obtain_optimizer_parameters_list
from oar.nn.clip import ClipGradByGlobalNorm

__all__ = ["HybridParallelOptimizer"]


class HybridParallelOptimizer(WrappedOptimizer):
    """An optimiser that joins gradients of all processes before a step, and clips them by their norm over all processes.

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
        self._hcg, self._strategy = hcg, strategy
        self._is_sharded = hcg.get_sharding_parallel_world_size() > 1
        super().__init__(DygraphShardingOptimizer(optimizer, hcg) if self._is_sharded else optimizer)
        # DataParallel joins gradients during the backward pass.
        self._joins_copies = hcg.get_parallel_mode() != ParallelMode.DATA_PARALLEL and hcg.get_dp_sep_parallel_group().nranks > 1
        for group in optimizer._groups:
            clip = group["grad_clip"]
            if type(clip) is ClipGradByGlobalNorm:
                group["grad_clip"] = HybridParallelClipGrad(clip, hcg)

    def _join_gradients(self) -> None:
        parameters = obtain_optimizer_parameters_list(self._inner_opt)
        if self._is_sharded:
            self._inner_opt.reduce_gradients(parameters, self._hcg)
        if self._joins_copies:
            fused_allreduce_gradients(parameters, self._hcg)

    def step(self) -> None:
        """Joins the gradients and updates the parameters."""
        self._join_gradients()
        self._inner_opt.step()

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Joins the gradients and updates the parameters: see ``Optimizer.minimize``."""
        self._join_gradients()
        return self._inner_opt.minimize(loss, startup_program, parameters, no_grad_set)
