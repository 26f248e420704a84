"""Optimisers, layers and scalers of several processes. A single process takes them as they are."""

from __future__ import annotations

import copy
from typing import Any

from oar.distributed.fleet import _process
from oar.distributed.fleet.base.distributed_strategy import DistributedStrategy
from oar.nn.layer.layers import Layer

__all__ = ["distributed_model", "distributed_optimizer", "distributed_scaler"]


def distributed_model(model: Layer) -> Layer:
    """A layer that trains together with its copies in other processes: the layer itself if there is one process.

    Args:
        model: the layer.

    Returns:
        a layer.

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
    _process.fleet._check_alone()
    return model


def distributed_optimizer(optimizer: Any, strategy: DistributedStrategy | None = None) -> Any:
    """An optimiser that adds up gradients of all processes: the optimiser itself if there is one process.

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
    fleet._check_alone()
    fleet.user_defined_optimizer = optimizer
    if strategy is not None:
        fleet._user_defined_strategy = copy.deepcopy(strategy)
    return optimizer


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
    _process.fleet._check_alone()
    return scaler
