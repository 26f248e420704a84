"""A scaler of losses that looks for infinities in all processes."""

from __future__ import annotations

from typing import Any

import oar
from oar.distributed.communication import ReduceOp, all_reduce
from oar.distributed.communication.group import Group

__all__ = ["HybridParallelGradScaler", "looking_everywhere"]


def looking_everywhere(scaler: Any, group: Group | None) -> Any:
    """Makes a scaler skip the steps in which any process of a group has found a gradient that is not finite.

    Args:
        scaler: the scaler.
        group: the processes; None means all.

    Returns:
        the scaler.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_gradscaler import looking_everywhere
        >>> scaler = oar.amp.GradScaler()
        >>> looking_everywhere(scaler, None) is scaler
        True
    """
    look_here = scaler._unscaled

    def look(grads: list[Any]) -> Any:
        found = look_here(grads)
        with oar.no_grad():
            count = found.astype("int32")
            all_reduce(count, ReduceOp.MAX, group)
            return count.astype("bool")

    scaler._unscaled = look
    return scaler


class HybridParallelGradScaler:
    """A ``GradScaler`` whose steps all processes take or skip together.

    Args:
        scaler: the scaler.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.meta_optimizers import HybridParallelGradScaler
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> HybridParallelGradScaler(oar.amp.GradScaler(init_loss_scaling=8.0), groups).scale(oar.to_tensor(2.0)).item()
        16.0
    """

    def __init__(self, scaler: Any, hcg: Any) -> None:
        self._scaler, self._hcg = looking_everywhere(scaler, None), hcg

    def __getattr__(self, name: str) -> Any:
        if name == "_scaler":
            raise AttributeError(name)
        return getattr(self._scaler, name)
