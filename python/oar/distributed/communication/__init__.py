"""What processes send each other. With one process a reduction, a broadcast or an exchange gives back what it was given.

All processes of a group make the same calls in the same order."""

from __future__ import annotations

from oar._C import Tensor
from oar.distributed.communication import stream
from oar.distributed.communication._calls import Task
from oar.distributed.communication._reduce_op import ReduceOp
from oar.distributed.communication.batch_isend_irecv import P2POp, batch_isend_irecv
from oar.distributed.communication.group import Group
from oar.distributed.communication.objects import (
    all_gather_object, broadcast_object_list, recv_object_list, scatter_object_list, send_object_list)
from oar.distributed.communication.reduce import reduce

__all__ = [
    "P2POp",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "irecv",
    "isend",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "stream",
]


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Combines a tensor of all processes, in place.

    Args:
        tensor: the tensor.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> _ = oar.distributed.all_reduce(x)
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.all_reduce(tensor, op, group, sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Copies a tensor of the process ``src`` into the tensors of all.

    Args:
        tensor: the tensor.
        src: the number of the process that has the content.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> _ = oar.distributed.broadcast(x, src=0)
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.broadcast(tensor, src, group, sync_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Collects the tensors of all processes in a list.

    Args:
        tensor_list: an empty list, or one with a tensor for each process, which is overwritten.
        tensor: the tensor of this process.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> parts = []
        >>> _ = oar.distributed.all_gather(parts, oar.to_tensor([1.0, 2.0]))
        >>> [part.tolist() for part in parts]
        [[1.0, 2.0]]
    """
    return stream.all_gather(tensor_list, tensor, group, sync_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Collects the tensors of all processes in a list of the process ``dst``.

    Args:
        tensor: the tensor of this process.
        gather_list: an empty list, or one with a tensor for each process, which is overwritten.
        dst: the number of the process that has the result.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> parts = []
        >>> _ = oar.distributed.gather(oar.to_tensor([1.0, 2.0]), parts, dst=0)
        >>> [part.tolist() for part in parts]
        [[1.0, 2.0]]
    """
    return stream.gather(tensor, gather_list, dst, group, sync_op)


def scatter(
    tensor: Tensor, tensor_list: list[Tensor] | None = None, src: int = 0, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Gives each process one tensor of a list of the process ``src``.

    Args:
        tensor: the tensor to write.
        tensor_list: one tensor for each process, in ``src``.
        src: the number of the process that has the list.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.scatter(x, [oar.to_tensor([1.0, 2.0])], src=0)
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.scatter(tensor, tensor_list, src, group, sync_op)


def reduce_scatter(
    tensor: Tensor, tensor_list: list[Tensor], op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combines lists of tensors, and gives each process one tensor of the result.

    Args:
        tensor: the tensor to write.
        tensor_list: one tensor for each process.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.reduce_scatter(x, [oar.to_tensor([1.0, 2.0])])
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.reduce_scatter(tensor, tensor_list, op, group, sync_op)


def alltoall(
    out_tensor_list: list[Tensor], in_tensor_list: list[Tensor], group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Sends each process one tensor of a list, and collects what they send.

    Args:
        out_tensor_list: an empty list, or one with a tensor for each process, which is overwritten.
        in_tensor_list: one tensor for each process.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> parts = []
        >>> _ = oar.distributed.alltoall(parts, [oar.to_tensor([1.0, 2.0])])
        >>> [part.tolist() for part in parts]
        [[1.0, 2.0]]
    """
    return stream.alltoall(out_tensor_list, in_tensor_list, group, sync_op)


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, in_split_sizes: list[int] | None = None, out_split_sizes: list[int] | None = None,
    group: Group | None = None, sync_op: bool = True,
) -> Task | None:  # fmt: skip
    """Sends each process a piece of a tensor, and joins what they send.

    Args:
        out_tensor: the tensor to write.
        in_tensor: the tensor to send.
        in_split_sizes: the sizes of the pieces; equal if None.
        out_split_sizes: the sizes of the pieces that come; equal if None.
        group: the processes; None means all.
        sync_op: whether to wait for the result.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.alltoall_single(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    return stream.alltoall_single(out_tensor, in_tensor, out_split_sizes, in_split_sizes, group, sync_op)


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Sends a tensor to another process, which calls ``recv``.

    Args:
        tensor: the tensor.
        dst: the number of the other process.
        group: the processes; None means all.
        sync_op: whether to wait.

    Examples:
        >>> import oar
        >>> oar.distributed.send(oar.ones([2]), dst=0)
        Traceback (most recent call last):
        ...
        ValueError: [send] dst is 0, but there is one process. hint: check get_world_size() first.
    """
    return stream.send(tensor, dst, group, sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Receives a tensor from another process, which calls ``send``.

    Args:
        tensor: the tensor to write.
        src: the number of the other process.
        group: the processes; None means all.
        sync_op: whether to wait.

    Examples:
        >>> import oar
        >>> oar.distributed.recv(oar.ones([2]), src=0)
        Traceback (most recent call last):
        ...
        ValueError: [recv] src is 0, but there is one process. hint: check get_world_size() first.
    """
    return stream.recv(tensor, src, group, sync_op)


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Task | None:
    """``send`` that does not wait.

    Args:
        tensor: the tensor.
        dst: the number of the other process.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> oar.distributed.isend(oar.ones([2]), dst=0)
        Traceback (most recent call last):
        ...
        ValueError: [isend] dst is 0, but there is one process. hint: check get_world_size() first.
    """
    return stream.message("isend", tensor, dst, group, False)


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task | None:
    """``recv`` that does not wait.

    Args:
        tensor: the tensor to write.
        src: the number of the other process.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> oar.distributed.irecv(oar.ones([2]), src=0)
        Traceback (most recent call last):
        ...
        ValueError: [irecv] src is 0, but there is one process. hint: check get_world_size() first.
    """
    return stream.message("irecv", tensor, src, group, False)
