"""A network whose parameters, gradients and states of the optimiser are divided."""

from __future__ import annotations

from typing import Any

from oar.distributed.communication.group import Group, _get_global_group
from oar.distributed.sharding._on_disk import OnDisk
from oar.distributed.sharding._optimizer import ShardedOptimizer
from oar.distributed.sharding.group_sharded import GroupSharded
from oar.nn.layer.layers import Layer

__all__ = ["GroupShardedStage3"]


class GroupShardedStage3(GroupSharded):
    """A network whose parameters, gradients and states of the optimiser are divided: what ``group_sharded_parallel`` makes for
    ``'p_g_os'``. The optimiser divides its states from then on.

    Args:
        layer: the network.
        optimizer: its optimiser, before the first step.
        group: the processes; None means all.
        sync_buffers: False: buffers are made equal once.
        device: accepted for compatibility.
        segment_size: accepted for compatibility.
        pretrain_sync_models: accepted for compatibility: the weights of the first process count.
        offload: as for ``group_sharded_parallel``.
        sync_comm: accepted for compatibility.
        dp_group: processes with copies of the pieces.
        exclude_layer: layers whose parameters stay whole.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_parallel.sharding.group_sharded_stage3 import GroupShardedStage3
        >>> net = oar.nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
        >>> GroupShardedStage3(net, optimizer)(oar.ones([3, 2])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(
        self, layer: Layer, optimizer: Any, group: Group | None = None, sync_buffers: bool = False, device: str = "cpu",
        segment_size: int = 2**20, pretrain_sync_models: bool = True, offload: bool | str = False, sync_comm: bool = False,
        dp_group: Group | None = None, exclude_layer: list[Any] | None = None,
    ) -> None:  # fmt: skip
        if sync_buffers:
            raise NotImplementedError("[GroupShardedStage3] sync_buffers=True is not available: buffers are made equal once. hint: pass False.")
        among = group or _get_global_group()
        folder = OnDisk(offload) if isinstance(offload, str) else None
        super().__init__(layer, 3, among, copies=dp_group, exclude=exclude_layer, folder=folder)
        ShardedOptimizer(optimizer, self.units, self.gradients, among, folder)
