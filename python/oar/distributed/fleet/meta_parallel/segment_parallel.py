"""A network whose sequences are cut into pieces."""

from __future__ import annotations

from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from oar.distributed.fleet.utils.hybrid_parallel_util import (
    broadcast_dp_parameters,
    broadcast_sep_parameters,
    broadcast_sharding_parameters,
)

__all__ = ["SegmentParallel"]


class SegmentParallel(MetaParallelBase):
    """A network whose sequences are cut into pieces: see ``MetaParallelBase``. The processes begin with the same weights. Each one
    passes its piece of the sequences; the network exchanges what its attention needs.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.SegmentParallel, meta_parallel.MetaParallelBase)
        True
    """

    def _prepare_for_model(self) -> None:
        broadcast_sep_parameters(self._layers, self._hcg)
        broadcast_sharding_parameters(self._layers, self._hcg)
        broadcast_dp_parameters(self._layers, self._hcg)
