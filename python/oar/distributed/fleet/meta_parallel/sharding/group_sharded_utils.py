"""The scaler of networks whose states are divided."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_gradscaler import looking_everywhere

__all__ = ["GroupShardedScaler"]


def GroupShardedScaler(scaler: Any) -> Any:
    """Makes a scaler skip the steps in which any process has found a gradient that is not finite.

    Args:
        scaler: the scaler.

    Returns:
        the scaler.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_parallel.sharding.group_sharded_utils import GroupShardedScaler
        >>> GroupShardedScaler(oar.amp.GradScaler(init_loss_scaling=4.0)).scale(oar.to_tensor(2.0)).item()
        8.0
    """
    return looking_everywhere(scaler, None)
