"""Cutting sequences into pieces for several processes. A single process has them whole."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group, check_alone
from oar.distributed.fleet.layers.mpu.mp_layers import ColumnParallelLinear, RowParallelLinear
from oar.nn.layer.layers import Layer

__all__ = [
    "AllGatherOp",
    "ColumnSequenceParallelLinear",
    "GatherOp",
    "ReduceScatterOp",
    "RowSequenceParallelLinear",
    "ScatterOp",
    "all_gather",
    "mark_as_sequence_parallel_parameter",
    "reduce_scatter",
    "register_sequence_parallel_allreduce_hooks",
    "scatter",
]


def _whole(function: str, input: Tensor, group: Group | None) -> Tensor:
    check_alone(function, group)
    return input


def scatter(input: Tensor, group: Group | None = None, axis: int = 0) -> Tensor:
    """The piece of this process along an axis: the whole if there is one process.

    Args:
        input: the whole tensor.
        group: the processes.
        axis: the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> sequence_parallel_utils.scatter(oar.ones([4, 2])).shape
        [4, 2]
    """
    return _whole("scatter", input, group)


def all_gather(input: Tensor, group: Group | None = None, axis: int = 0) -> Tensor:
    """The pieces of all processes joined along an axis.

    Args:
        input: the piece of this process.
        group: the processes.
        axis: the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> sequence_parallel_utils.all_gather(oar.ones([4, 2])).shape
        [4, 2]
    """
    return _whole("all_gather", input, group)


def reduce_scatter(input: Tensor, group: Group | None = None) -> Tensor:
    """The piece of this process of the sum over the processes.

    Args:
        input: the tensor of this process.
        group: the processes.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> sequence_parallel_utils.reduce_scatter(oar.ones([4, 2])).shape
        [4, 2]
    """
    return _whole("reduce_scatter", input, group)


class ScatterOp:
    """``scatter``, whose gradient is joined again.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ScatterOp
        >>> ScatterOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
        """The piece of this process along an axis."""
        return scatter(input, group, axis)


class GatherOp:
    """``all_gather``, whose gradient is cut again.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import GatherOp
        >>> GatherOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
        """The pieces of all processes joined along an axis."""
        return all_gather(input, group, axis)


class AllGatherOp:
    """``all_gather``, whose gradient is added up and cut.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import AllGatherOp
        >>> AllGatherOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, group: Group | None = None) -> Tensor:
        """The pieces of all processes joined along the first axis."""
        return all_gather(input, group)


class ReduceScatterOp:
    """``reduce_scatter``, whose gradient is joined.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ReduceScatterOp
        >>> ReduceScatterOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, group: Group | None = None) -> Tensor:
        """The piece of this process of the sum over the processes."""
        return reduce_scatter(input, group)


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """``ColumnParallelLinear`` whose input is cut along the sequence.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ColumnSequenceParallelLinear
        >>> ColumnSequenceParallelLinear(3, 2, gather_output=False)(oar.ones([4, 3])).shape
        [4, 2]
    """


class RowSequenceParallelLinear(RowParallelLinear):
    """``RowParallelLinear`` whose result is cut along the sequence.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import RowSequenceParallelLinear
        >>> RowSequenceParallelLinear(3, 2, input_is_parallel=True)(oar.ones([4, 3])).shape
        [4, 2]
    """


def mark_as_sequence_parallel_parameter(parameter: Tensor) -> None:
    """Notes that a parameter sees a piece of the sequence in each process.

    Args:
        parameter: the parameter.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> weight = oar.nn.Linear(2, 2).weight
        >>> sequence_parallel_utils.mark_as_sequence_parallel_parameter(weight)
        >>> weight.sequence_parallel
        True
    """
    parameter.sequence_parallel = True  # type: ignore[attr-defined]


def register_sequence_parallel_allreduce_hooks(
    model: Layer, accumulation_steps: int = 1, fuse_sequence_parallel_allreduce: bool = False, hcg: Any = None
) -> None:
    """Adds up gradients of marked parameters over the processes: nothing to do if there is one.

    Args:
        model: the network.
        accumulation_steps: how many backward passes make a step.
        fuse_sequence_parallel_allreduce: accepted for compatibility.
        hcg: accepted for compatibility.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> sequence_parallel_utils.register_sequence_parallel_allreduce_hooks(oar.nn.Linear(2, 2))
    """
    check_alone("register_sequence_parallel_allreduce_hooks")
