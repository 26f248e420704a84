"""Adding up gradients and sharing weights among processes. A single process has nothing to do."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group, check_alone
from oar.nn.layer.layers import Layer

__all__ = [
    "broadcast_dp_parameters",
    "broadcast_mp_parameters",
    "broadcast_sharding_parameters",
    "fused_allreduce_gradients",
    "obtain_optimizer_parameters_list",
]


def obtain_optimizer_parameters_list(optimizer: Any) -> list[Tensor]:
    """The parameters of an optimiser, of all its groups.

    Args:
        optimizer: the optimiser.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> net = oar.nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
        >>> len(hybrid_parallel_util.obtain_optimizer_parameters_list(optimizer))
        2
    """
    parameters = optimizer._parameter_list
    if parameters and isinstance(parameters[0], dict):
        return [parameter for group in parameters for parameter in group["params"]]
    return list(parameters)


def fused_allreduce_gradients(parameter_list: list[Tensor], hcg: Any = None) -> None:
    """Averages gradients over the processes.

    Args:
        parameter_list: the parameters.
        hcg: the groups of this process; None means all processes.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> hybrid_parallel_util.fused_allreduce_gradients(oar.nn.Linear(2, 1).parameters(), None)
    """
    group: Group | None = None if hcg is None else hcg.get_data_parallel_group()
    check_alone("fused_allreduce_gradients", group)


def broadcast_dp_parameters(model: Layer, hcg: Any) -> None:
    """Gives the copies of a network the same weights.

    Args:
        model: the network.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> hybrid_parallel_util.broadcast_dp_parameters(oar.nn.Linear(2, 1), groups)
    """
    check_alone("broadcast_dp_parameters", hcg.get_data_parallel_group())


def broadcast_mp_parameters(model: Layer, hcg: Any) -> None:
    """Gives the pieces of a network the same uncut weights.

    Args:
        model: the network.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> hybrid_parallel_util.broadcast_mp_parameters(oar.nn.Linear(2, 1), groups)
    """
    check_alone("broadcast_mp_parameters", hcg.get_model_parallel_group())


def broadcast_sharding_parameters(model: Layer, hcg: Any) -> None:
    """Gives processes that divide the states of an optimiser the same weights.

    Args:
        model: the network.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> hybrid_parallel_util.broadcast_sharding_parameters(oar.nn.Linear(2, 1), groups)
    """
    check_alone("broadcast_sharding_parameters", hcg.get_sharding_parallel_group())
