"""A network whose gradients and states of the optimiser are divided."""

from __future__ import annotations

from typing import Any

from oar.distributed.communication.group import Group, _get_global_group
from oar.distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2 import GroupShardedOptimizerStage2
from oar.distributed.sharding._optimizer import ShardedOptimizer
from oar.distributed.sharding.group_sharded import GroupSharded
from oar.nn.layer.layers import Layer

__all__ = ["GroupShardedStage2"]


class GroupShardedStage2(GroupSharded):
    """A network whose gradients and states of the optimiser are divided: what ``group_sharded_parallel`` makes for ``'os_g'``.

    Args:
        layer: the network.
        sharding_optimizer: its optimiser, a ``GroupShardedOptimizerStage2``.
        group: the processes; None takes those of the optimiser.
        sync_buffers: False: buffers are made equal once.
        buffer_max_size: how many bytes of gradients are sent together.
        auto_refresh_trainable: accepted for compatibility.
        device: accepted for compatibility.
        dp_group: processes with copies of the pieces.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2 import GroupShardedOptimizerStage2
        >>> from oar.distributed.fleet.meta_parallel.sharding.group_sharded_stage2 import GroupShardedStage2
        >>> net = oar.nn.Linear(2, 1)
        >>> optimizer = GroupShardedOptimizerStage2(net.parameters(), oar.optimizer.SGD(0.1, parameters=net.parameters()))
        >>> GroupShardedStage2(net, optimizer)(oar.ones([3, 2])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(
        self, layer: Layer, sharding_optimizer: Any, group: Group | None = None, sync_buffers: bool = False,
        buffer_max_size: int = 2**23, auto_refresh_trainable: bool = True, device: str = "cpu", dp_group: Group | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(sharding_optimizer, GroupShardedOptimizerStage2):
            raise TypeError("[GroupShardedStage2] sharding_optimizer must be a GroupShardedOptimizerStage2, not "
                            f"{type(sharding_optimizer).__name__}.")
        if sync_buffers:
            raise NotImplementedError("[GroupShardedStage2] sync_buffers=True is not available: buffers are made equal once. hint: pass False.")
        among = group or sharding_optimizer._group or _get_global_group()
        super().__init__(layer, 2, among, buffer_max_size, dp_group or sharding_optimizer._dp_group)
        ShardedOptimizer(sharding_optimizer._inner_opt, self.units, self.gradients, among, None)
        sharding_optimizer._is_bound = True
