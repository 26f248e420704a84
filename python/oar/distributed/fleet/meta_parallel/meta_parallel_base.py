"""Networks that processes divide. With one process each is the network that it wraps."""

from __future__ import annotations

from typing import Any

from oar.distributed.communication.group import check_alone
from oar.nn.layer.layers import Layer

__all__ = ["MetaParallelBase", "PipelineParallel", "SegmentParallel", "ShardingParallel", "TensorParallel"]


class MetaParallelBase(Layer):
    """A network that processes divide. With one process it is the network that it wraps.

    Args:
        layers: the network.
        hcg: the groups of this process.
        strategy: the settings of training.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> net = fleet.meta_parallel.TensorParallel(oar.nn.Linear(2, 1), groups, strategy=fleet.DistributedStrategy())
        >>> net(oar.ones([3, 2])).shape
        [3, 1]
    """

    def __init__(self, layers: Layer, hcg: Any, strategy: Any) -> None:
        super().__init__(layers.full_name() + "_meta_parallel_base")
        check_alone(type(self).__name__)
        self._layers, self._hcg, self._strategy = layers, hcg, strategy

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._layers(*inputs, **kwargs)


class TensorParallel(MetaParallelBase):
    """A network with layers that are cut into pieces: see ``MetaParallelBase``.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.TensorParallel, meta_parallel.MetaParallelBase)
        True
    """


class ShardingParallel(MetaParallelBase):
    """A network whose states are cut into pieces: see ``MetaParallelBase``.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.ShardingParallel, meta_parallel.MetaParallelBase)
        True
    """


class SegmentParallel(MetaParallelBase):
    """A network whose sequences are cut into pieces: see ``MetaParallelBase``.

    Examples:
        >>> from oar.distributed.fleet import meta_parallel
        >>> issubclass(meta_parallel.SegmentParallel, meta_parallel.MetaParallelBase)
        True
    """


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
        raise NotImplementedError("[PipelineParallel] a pipeline needs several processes, and Oar does not connect processes yet. "
                                  "hint: call the PipelineLayer itself.")
