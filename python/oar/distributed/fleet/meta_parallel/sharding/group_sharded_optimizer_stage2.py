"""The optimiser whose states and gradients processes divide."""

from __future__ import annotations

from typing import Any

from oar.distributed.communication.group import Group, check_alone
from oar.distributed.fleet.meta_optimizers.dygraph_optimizer._wrapper import WrappedOptimizer

__all__ = ["GroupShardedOptimizerStage2"]


class GroupShardedOptimizerStage2(WrappedOptimizer):
    """An optimiser whose states and gradients processes divide. With one process it is the optimiser that it wraps.

    Args:
        params: the parameters.
        optim: the optimiser.
        group: the processes.
        offload: False: states stay on the device.
        device: accepted for compatibility.
        pretrain_sync_models: accepted for compatibility.
        dp_group: accepted for compatibility.
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
        check_alone("GroupShardedOptimizerStage2", group)
        if offload:
            raise NotImplementedError("[GroupShardedOptimizerStage2] offload=True moves states to the CPU, where they are already. "
                                      "hint: pass offload=False.")
        self._params, self._group, self._broadcast_overlap = list(params), group, False
