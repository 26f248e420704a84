"""A network whose layers stand in different processes."""

from __future__ import annotations

from typing import Any

from oar.distributed.fleet.meta_parallel.meta_parallel_base import MetaParallelBase
from oar.nn.layer.layers import Layer

__all__ = ["PipelineParallel"]


class PipelineParallel(MetaParallelBase):
    """A network whose layers stand in different processes. It needs several, so making one is an error today.

    Args:
        layers: the network, a ``PipelineLayer``.
        hcg: the groups of processes.
        strategy: the ``DistributedStrategy``.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.PipelineParallel, meta_parallel.MetaParallelBase)
        True
    """

    def __init__(self, layers: Layer, hcg: Any, strategy: Any) -> None:
        raise NotImplementedError("[PipelineParallel] pipelines over several processes are not there yet. "
                                  "hint: call the PipelineLayer itself.")
