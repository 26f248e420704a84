"""A network with layers that are cut into pieces."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from oar.distributed.fleet.utils.hybrid_parallel_util import (
    broadcast_dp_parameters,
    broadcast_input_data,
    broadcast_mp_parameters,
    broadcast_sep_parameters,
    broadcast_sharding_parameters,
)

__all__ = ["TensorParallel"]


class TensorParallel(MetaParallelBase):
    """A network with layers that are cut into pieces: see ``MetaParallelBase``. The processes begin with the same whole weights, and
    those along the axis of tensors get the inputs of the first one.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.TensorParallel, meta_parallel.MetaParallelBase)
        True
    """

    def _prepare_for_model(self) -> None:
        broadcast_mp_parameters(self._layers, self._hcg)
        broadcast_sep_parameters(self._layers, self._hcg)
        broadcast_sharding_parameters(self._layers, self._hcg)
        broadcast_dp_parameters(self._layers, self._hcg)

    def _pre_forward(self, *inputs: Any, **kwargs: Any) -> None:
        if self._strategy.hybrid_configs["mp_configs"].need_broadcast_data:
            broadcast_input_data(self._hcg, *inputs, **kwargs)
