"""The optimiser whose states and gradients processes divide."""

from __future__ import annotations

from typing import Any

from oar.distributed.communication.group import Group
from oar.distributed.environment import get_world_size
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer

__all__ = ["GroupShardedOptimizerStage2"]


class GroupShardedOptimizerStage2(WrappedOptimizer):
    """An optimiser whose states and gradients processes divide, once ``GroupShardedStage2`` has got it and its network.

    Args:
        params: the parameters.
        optim: the optimiser, before its first step.
        group: the processes; None means all.
        offload: accepted if False: states of the CPU are in the memory of the host.
        device: accepted for compatibility.
        pretrain_sync_models: accepted for compatibility: the weights of the first process count.
        dp_group: processes with copies of the pieces.
        kw: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2 import GroupShardedOptimizerStage2
        >>> net = oar.nn.Linear(2, 1)
        >>> inner = oar.optimizer.SGD(0.1, parameters=net.parameters())
        >>> GroupShardedOptimizerStage2(net.parameters(), inner).get_lr()
        0.1
    """

    def __init__(
        self, params: Any, optim: Any, group: Group | None = None, offload: bool = False, device: str = "cpu",
        pretrain_sync_models: bool = True, dp_group: Group | None = None, **kw: Any,
    ) -> None:  # fmt: skip
        super().__init__(optim)
        if offload:
            raise NotImplementedError("[GroupShardedOptimizerStage2] offload=True moves states to the CPU, where they are already. "
                                      "hint: pass offload=False, or a folder to group_sharded_parallel.")
        self._params, self._group, self._dp_group, self._is_bound = list(params), group, dp_group, False

    def step(self) -> None:
        """Updates the pieces of this process."""
        count = get_world_size() if self._group is None else self._group.nranks
        if count > 1 and not self._is_bound:
            raise RuntimeError(f"[GroupShardedOptimizerStage2] {count} processes would update their copies apart. hint: wrap the network in "
                               "GroupShardedStage2, or call group_sharded_parallel.")
        self._inner_opt.step()
