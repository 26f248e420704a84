"""Cutting sequences into pieces for several processes. A single process has them whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar._C import Tensor, ops
from oar.distributed.communication.group import Group
from oar.distributed.fleet.layers.mpu import mp_ops
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
    "is_sequence_parallel_parameter",
    "mark_as_sequence_parallel_parameter",
    "reduce_scatter",
    "register_sequence_parallel_allreduce_hooks",
    "scatter",
]


def _among(group: Group | None, hcg: Any = None) -> Group:
    """The group, or the processes along the axis of tensors: they divide the sequences, too."""
    from oar.distributed.fleet._process import fleet

    return group if group is not None else (hcg or fleet.get_hybrid_communicate_group()).get_model_parallel_group()


def scatter(input: Tensor, group: Group | None = None, axis: int = 0) -> Tensor:
    """The piece of this process along an axis: the whole if there is one process. The gradient joins the pieces.

    Args:
        input: the whole tensor, the same in all processes.
        group: the processes; by default those along the axis of tensors.
        axis: the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> sequence_parallel_utils.scatter(oar.ones([4, 2])).shape
        [4, 2]
    """
    return mp_ops.own_part(input, axis, _among(group), "scatter")


def all_gather(input: Tensor, group: Group | None = None, axis: int = 0) -> Tensor:
    """The pieces of all processes joined along an axis. The gradients of the processes are added up and cut.

    Args:
        input: the piece of this process.
        group: the processes; by default those along the axis of tensors.
        axis: the axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> sequence_parallel_utils.all_gather(oar.ones([4, 2])).shape
        [4, 2]
    """
    return mp_ops.joined(input, axis, _among(group), shared=False)


def reduce_scatter(input: Tensor, group: Group | None = None) -> Tensor:
    """The piece of this process, along the first axis, of the sum over the processes. The gradient joins the pieces.

    Args:
        input: the tensor of this process.
        group: the processes; by default those along the axis of tensors.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> sequence_parallel_utils.reduce_scatter(oar.ones([4, 2])).shape
        [4, 2]
    """
    return mp_ops.added_part(input, 0, _among(group), "reduce_scatter")


class ScatterOp:
    """``scatter``, whose gradient is joined again.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ScatterOp
        >>> ScatterOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
        """The piece of this process along an axis."""
        return scatter(input, group, axis)


class GatherOp:
    """The pieces of all processes, which go on to compute the same: the gradient is cut again.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import GatherOp
        >>> GatherOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
        """The pieces of all processes joined along an axis."""
        return mp_ops.joined(input, axis, _among(group), shared=True)


class AllGatherOp:
    """The pieces of all processes, each of which goes on with a part of the work: the gradient is added up and cut.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
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
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ReduceScatterOp
        >>> ReduceScatterOp.apply(oar.ones([4, 2])).shape
        [4, 2]
    """

    @staticmethod
    def apply(input: Tensor, group: Group | None = None) -> Tensor:
        """The piece of this process of the sum over the processes."""
        return reduce_scatter(input, group)


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """``ColumnParallelLinear`` whose input is cut along the sequence, its first axis. The arguments are the same; ``gather_output``
    must be False.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import ColumnSequenceParallelLinear
        >>> ColumnSequenceParallelLinear(3, 2, gather_output=False)(oar.ones([4, 3])).shape
        [4, 2]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool | None = None,
        gather_output: bool = True, fuse_matmul_bias: bool = False, mp_group: Group | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if gather_output:
            raise AssertionError("[ColumnSequenceParallelLinear] gather_output is True, but the result stays cut along its last axis. "
                                 "hint: pass gather_output=False.")
        super().__init__(in_features, out_features, weight_attr, has_bias, gather_output, fuse_matmul_bias, mp_group, name)

    def _entering(self, x: Tensor) -> Tensor:
        return mp_ops.joined(x, 0, self.model_parallel_group, shared=False)


class RowSequenceParallelLinear(RowParallelLinear):
    """``RowParallelLinear`` whose result is cut along the sequence, its first axis. The arguments are the same;
    ``input_is_parallel`` must be True.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> from oar.distributed.fleet.utils.sequence_parallel_utils import RowSequenceParallelLinear
        >>> RowSequenceParallelLinear(3, 2, input_is_parallel=True)(oar.ones([4, 3])).shape
        [4, 2]
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, has_bias: bool = True,
        input_is_parallel: bool = False, fuse_matmul_bias: bool = False, mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if not input_is_parallel:
            raise AssertionError("[RowSequenceParallelLinear] input_is_parallel is False, but the input must be cut along its last axis. "
                                 "hint: pass input_is_parallel=True.")
        super().__init__(in_features, out_features, weight_attr, has_bias, input_is_parallel, fuse_matmul_bias, mp_group, name)
        if self.bias is not None:
            mark_as_sequence_parallel_parameter(self.bias)

    def _leaving(self, product: Tensor) -> Tensor:
        return mp_ops.added_part(product, 0, self.model_parallel_group, "RowSequenceParallelLinear")


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


def is_sequence_parallel_parameter(parameter: Tensor) -> bool:
    """Whether ``mark_as_sequence_parallel_parameter`` has marked a parameter.

    Args:
        parameter: the parameter.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> sequence_parallel_utils.is_sequence_parallel_parameter(oar.nn.Linear(2, 2).weight)
        False
    """
    return getattr(parameter, "sequence_parallel", False)


def register_sequence_parallel_allreduce_hooks(
    model: Layer, accumulation_steps: int = 1, fuse_sequence_parallel_allreduce: bool = False, hcg: Any = None
) -> None:
    """Adds up gradients of marked parameters over the processes that divide the sequences, during the backward pass.

    Args:
        model: the network.
        accumulation_steps: how many backward passes make a step: gradients are added up in the last one.
        fuse_sequence_parallel_allreduce: accepted for compatibility.
        hcg: the groups of this process; None means those of ``fleet.init``.

    Examples:
        >>> import oar
        >>> from oar.distributed import fleet
        >>> from oar.distributed.fleet.utils import sequence_parallel_utils
        >>> _ = fleet.init(is_collective=True)
        >>> sequence_parallel_utils.register_sequence_parallel_allreduce_hooks(oar.nn.Linear(2, 2))
    """
    if not isinstance(accumulation_steps, int) or accumulation_steps < 1:
        raise ValueError(f"[register_sequence_parallel_allreduce_hooks] accumulation_steps is {accumulation_steps!r}. hint: pass 1 or more.")
    group = _among(None, hcg)
    if group.nranks > 1:
        for parameter in model.parameters():
            if is_sequence_parallel_parameter(parameter):
                parameter.register_hook(_adding_hook(parameter, group, accumulation_steps))


def _adding_hook(parameter: Tensor, group: Group, steps: int) -> Callable[[Tensor], Tensor | None]:
    passes = 0

    def arrived(gradient: Tensor) -> Tensor | None:
        nonlocal passes
        passes += 1
        if passes % steps:
            return None
        earlier = parameter.grad if steps > 1 else None
        if earlier is not None:  # of the passes before, which were not added up
            parameter.clear_gradient(False)
            gradient = gradient + earlier
        return ops.all_reduce(gradient, "sum", group.id, group.nranks, True)

    return arrived
