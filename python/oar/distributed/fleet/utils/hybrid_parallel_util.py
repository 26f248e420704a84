"""Adding up gradients and sharing weights among processes. A single process has nothing to do."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.distributed._reducer import buckets_of
from oar.distributed.communication import ReduceOp, all_reduce, broadcast
from oar.distributed.communication.group import Group, get_group
from oar.distributed.parallel import sync_params_buffers
from oar.nn.layer.layers import Layer

__all__ = [
    "broadcast_dp_parameters",
    "broadcast_input_data",
    "broadcast_mp_parameters",
    "broadcast_sep_parameters",
    "broadcast_sharding_parameters",
    "fused_allreduce_gradients",
    "fused_allreduce_gradients_with_group",
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
    """Joins gradients: averages them over the processes along the axis of data, and adds them up along that of sequences, where
    each process has the gradient of its part of one loss.

    Args:
        parameter_list: the parameters. Those with ``no_sync`` are left out.
        hcg: the groups of this process; None averages over all processes.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> hybrid_parallel_util.fused_allreduce_gradients(oar.nn.Linear(2, 1).parameters(), None)
    """
    if hcg is None:
        fused_allreduce_gradients_with_group(parameter_list, None)
    else:
        fused_allreduce_gradients_with_group(parameter_list, hcg.get_dp_sep_parallel_group(), scale=1 / hcg.get_data_parallel_world_size())


def fused_allreduce_gradients_with_group(
    parameter_list: list[Tensor], group: Group | None, bucket_size: int = 128 << 20, scale: float | None = None
) -> None:
    """Adds up gradients over the processes of a group, many in one message.

    Args:
        parameter_list: the parameters. Those with ``no_sync`` are left out.
        group: the processes; None means all.
        bucket_size: how many bytes are sent together.
        scale: the factor of the sums; None averages.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> hybrid_parallel_util.fused_allreduce_gradients_with_group(oar.nn.Linear(2, 1).parameters(), None)
    """
    among = get_group(0) if group is None else group
    assert among is not None
    if among.nranks == 1:
        return
    factor = 1 / among.nranks if scale is None else scale
    with oar.no_grad():
        held = [(p, grad if grad.is_dense() else grad.to_dense()) for p in parameter_list
                if (grad := p.grad) is not None and not p.stop_gradient and not getattr(p, "no_sync", False)]
        for numbers in buckets_of([grad for _, grad in held], bucket_size, bucket_size):
            _join_gradients([held[n] for n in numbers], among, factor)


def _join_gradients(held: list[tuple[Tensor, Tensor]], group: Group, factor: float) -> None:
    """Adds up the gradients of parameters in one message."""
    flat = oar.concat([oar.reshape(grad, [-1]) for _, grad in held])
    all_reduce(flat, ReduceOp.SUM, group)
    if factor != 1:
        flat = flat * factor
    for (parameter, grad), part in zip(held, oar.split(flat, [grad.numel().item() for _, grad in held])):
        grad.copy_(oar.reshape(part, grad.shape))
        parameter.grad = grad


def broadcast_input_data(hcg: Any, *inputs: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Gives the processes along the axis of tensors the inputs of the first one. Tensors are written in place.

    Args:
        hcg: the groups of this process.
        inputs: tensors, also in lists, tuples and dicts; everything else stays as it is.
        kwargs: likewise.

    Returns:
        the inputs: a tuple and a dict.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> hybrid_parallel_util.broadcast_input_data(groups, 3, a=True)
        ((3,), {'a': True})
    """
    group = hcg.get_model_parallel_group()
    if group.nranks > 1:
        with oar.no_grad():
            _broadcast_all((inputs, kwargs), group)
    return inputs, kwargs


def _broadcast_all(value: Any, group: Group) -> None:
    if isinstance(value, Tensor):
        broadcast(value.detach(), group.ranks[0], group)
    elif isinstance(value, dict):
        for item in value.values():
            _broadcast_all(item, group)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _broadcast_all(item, group)


def broadcast_dp_parameters(model: Layer, hcg: Any) -> None:
    """Gives the copies of a network along the axis of data the same weights.

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
    sync_params_buffers(model, hcg.get_data_parallel_group(), hcg.get_data_parallel_group_src_rank(), is_model_parallel=False)


def broadcast_mp_parameters(model: Layer, hcg: Any) -> None:
    """Gives the processes along the axis of tensors the same whole weights; those that are cut stay.

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
    sync_params_buffers(model, hcg.get_model_parallel_group(), hcg.get_model_parallel_group_src_rank(), is_model_parallel=True)


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
    sync_params_buffers(model, hcg.get_sharding_parallel_group(), hcg.get_sharding_parallel_group_src_rank(), is_model_parallel=False)


def broadcast_sep_parameters(model: Layer, hcg: Any) -> None:
    """Gives processes that divide sequences the same weights.

    Args:
        model: the network.
        hcg: the groups of this process.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import hybrid_parallel_util
        >>> groups = fleet.init(is_collective=True).get_hybrid_communicate_group()
        >>> hybrid_parallel_util.broadcast_sep_parameters(oar.nn.Linear(2, 1), groups)
    """
    sync_params_buffers(model, hcg.get_sep_parallel_group(), hcg.get_sep_parallel_group_src_rank(), is_model_parallel=False)
