"""Networks, optimisers and scalers of several processes. A single process takes them as they are."""

from __future__ import annotations

import copy
from typing import Any

from oar.distributed.fleet import _process
from oar.distributed.fleet.base.distributed_strategy import DistributedStrategy
from oar.distributed.fleet.base.topology import ParallelMode
from oar.nn.layer.layers import Layer

__all__ = ["distributed_model", "distributed_optimizer", "distributed_scaler"]


def distributed_model(model: Layer) -> Layer:
    """A layer that trains together with its copies in other processes, in the way that the strategy of ``fleet.init`` asks for: the
    layer itself if there is one process.

    Args:
        model: the layer.

    Returns:
        a layer: ``DataParallel``, ``TensorParallel``, ``SegmentParallel`` or ``ShardingParallel`` around the given one.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> net = oar.nn.Linear(2, 1)
        >>> fleet.distributed_model(net) is net
        True
    """
    if not isinstance(model, Layer):
        raise TypeError(f"[distributed_model] model must be a layer, not {type(model).__name__}.")
    from oar.distributed.fleet import meta_parallel
    from oar.distributed.parallel import DataParallel

    fleet = _process.fleet
    groups, strategy = fleet.get_hybrid_communicate_group(), fleet._user_defined_strategy
    if groups.nranks == 1:
        return model
    unsupported = [name for name in ("amp", "recompute") if getattr(strategy, name)]
    if unsupported:
        raise NotImplementedError(f"[distributed_model] the strategy sets {', '.join(unsupported)}, which Oar does not apply by itself. "
                                  "hint: use oar.amp.auto_cast and fleet.utils.recompute in the script.")
    mode = groups.get_parallel_mode()
    if mode == ParallelMode.DATA_PARALLEL:
        return DataParallel(model, None, strategy.fuse_grad_size_in_MB, strategy.last_comm_group_size_MB,
                            strategy.find_unused_parameters, groups.get_data_parallel_group())
    wrapper = {ParallelMode.TENSOR_PARALLEL: meta_parallel.TensorParallel, ParallelMode.PIPELINE_PARALLEL: meta_parallel.PipelineParallel,
               ParallelMode.SHARDING_PARALLEL: meta_parallel.ShardingParallel, ParallelMode.SEGMENT_PARALLEL: meta_parallel.SegmentParallel}
    assert mode is not None
    return wrapper[mode](model, groups, strategy)


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """An optimiser that joins gradients of all processes: the optimiser itself if there is one process.

    Args:
        optimizer: the optimiser.
        strategy: the settings of training, instead of those of ``init``.

    Returns:
        the optimiser; for static programs, an object whose ``minimize`` uses it.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> optimizer = oar.optimizer.SGD(0.1, parameters=oar.nn.Linear(2, 1).parameters())
        >>> fleet.distributed_optimizer(optimizer) is optimizer
        True
    """
    import oar

    fleet = _process.fleet
    if not oar.in_dynamic_mode():
        return fleet.distributed_optimizer(optimizer, strategy)
    if fleet._servers is not None:
        return fleet._train_with_servers(optimizer, strategy)
    fleet.user_defined_optimizer = optimizer
    if strategy is not None:
        fleet._user_defined_strategy = copy.deepcopy(strategy)
    groups = fleet.get_hybrid_communicate_group()
    if groups.nranks == 1:
        return optimizer
    from oar.distributed.fleet.meta_optimizers import HybridParallelOptimizer

    return HybridParallelOptimizer(optimizer, groups, fleet._user_defined_strategy)


def distributed_scaler(scaler: Any) -> Any:
    """A scaler of losses that looks for infinities in all processes: the scaler itself if there is one process.

    Args:
        scaler: the scaler.

    Returns:
        a scaler.

    Examples:
        >>> from oar.distributed import fleet
        >>> scaler = object()
        >>> fleet.distributed_scaler(scaler) is scaler
        True
    """
    from oar.distributed.environment import get_world_size
    from oar.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_gradscaler import looking_everywhere

    return scaler if get_world_size() == 1 else looking_everywhere(scaler, None)
