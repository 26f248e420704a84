"""The optimiser whose states processes divide."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.distributed.communication import stream
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer
from oar.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients_with_group, obtain_optimizer_parameters_list

__all__ = ["DygraphShardingOptimizer", "DygraphShardingOptimizerV2"]


class DygraphShardingOptimizer(WrappedOptimizer):
    """An optimiser whose states processes divide by parameter: each one updates its parameters, and sends them to the others. With
    one process it is the optimiser that it wraps.

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
        self._group = hcg.get_sharding_parallel_group()
        self._rank2params = self._partition_parameters()
        self._owned = {id(p) for p in self._rank2params[self._group.rank]}

    def _partition_parameters(self) -> list[list[Tensor]]:
        """The parameters of each process: the next largest one goes to the process that has the fewest elements."""
        parts: list[list[Tensor]] = [[] for _ in range(self._group.nranks)]
        sizes = [0] * self._group.nranks
        trained = [p for p in obtain_optimizer_parameters_list(self._inner_opt) if not p.stop_gradient]
        for parameter in sorted(trained, key=lambda p: -p.numel().item()):
            owner = sizes.index(min(sizes))
            parts[owner].append(parameter)
            sizes[owner] += parameter.numel().item()
        return parts

    def reduce_gradients(self, parameter_list: list[Tensor], hcg: Any) -> None:
        """Averages gradients over the processes that divide the states.

        Args:
            parameter_list: the parameters.
            hcg: the groups of this process.
        """
        fused_allreduce_gradients_with_group(parameter_list, self._group)

    def _with_own_gradients(self, update: Any) -> Any:
        """Runs an update that sees gradients of this process's parameters only, then sends out what it has written."""
        others = [(p, p.grad) for part in self._rank2params for p in part if id(p) not in self._owned]
        for parameter, _ in others:
            parameter.clear_gradient(False)
        try:
            result = update()
        finally:
            for parameter, gradient in others:
                if gradient is not None:
                    parameter.grad = gradient
        if self._group.nranks > 1:
            tasks = [stream.broadcast(p.detach(), owner, self._group, sync_op=False)
                     for owner, part in zip(self._group.ranks, self._rank2params) for p in part]
            for task in tasks:
                if task is not None:
                    task.wait()
        return result

    def step(self) -> None:
        """Updates the parameters of this process, and gets those of the others."""
        self._with_own_gradients(self._inner_opt.step)

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
        """Updates the parameters of this process, and gets those of the others: see ``Optimizer.minimize``."""
        return self._with_own_gradients(lambda: self._inner_opt.minimize(loss, startup_program, parameters, no_grad_set))


class DygraphShardingOptimizerV2(DygraphShardingOptimizer):
    """The name of Paddle's optimiser that divides states by element. Here it divides them by parameter: the numbers are the same.

    Examples:
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import DygraphShardingOptimizer
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer import dygraph_sharding_optimizer
        >>> issubclass(dygraph_sharding_optimizer.DygraphShardingOptimizerV2, DygraphShardingOptimizer)
        True
    """
