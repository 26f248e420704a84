"""A network whose optimiser has states that are divided."""

from __future__ import annotations

from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from oar.distributed.fleet.utils.hybrid_parallel_util import broadcast_dp_parameters, broadcast_sharding_parameters

__all__ = ["ShardingParallel"]


class ShardingParallel(MetaParallelBase):
    """A network whose optimiser has states that processes divide: see ``MetaParallelBase``. The processes begin with the same weights.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.ShardingParallel, meta_parallel.MetaParallelBase)
        True
    """

    def _prepare_for_model(self) -> None:
        broadcast_sharding_parameters(self._layers, self._hcg)
        broadcast_dp_parameters(self._layers, self._hcg)
