"""Combining a tensor of all processes in one of them."""

from __future__ import annotations

from oar._C import Tensor
from oar.distributed.communication import stream
from oar.distributed.communication._calls import Task
from oar.distributed.communication._reduce_op import ReduceOp, check_op
from oar.distributed.communication.group import Group

__all__ = ["ReduceOp", "reduce"]


def _get_reduce_op(reduce_op: int, func_name: str) -> int:
    """A checked member of ``ReduceOp``, by the name that Paddle's scripts use."""
    return check_op(func_name, reduce_op)


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combines a tensor of all processes, in place, in the process ``dst``.

    Args:
        tensor: the tensor.
        dst: the number of the process that has the result.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> _ = oar.distributed.reduce(x, dst=0)
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.reduce(tensor, dst, op, group, sync_op)
