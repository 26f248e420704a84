"""The messages of ``oar.distributed`` with a choice of the queue. The CPU has one, so ``use_calc_stream`` changes nothing."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication._alone import Task, check_peer, collect, overwrite, receive
from oar.distributed.communication._reduce_op import ReduceOp, check_op
from oar.distributed.communication.group import Group

__all__ = [
    "all_gather",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]


def _begin(
    function: str, group: Group | None, sync_op: bool, use_calc_stream: bool, argument: str = "rank", rank: int = 0
) -> Task | None:
    """The task of a call; None if this process is not in the group."""
    if use_calc_stream and not sync_op:
        raise RuntimeError(f"[{function}] use_calc_stream=True needs sync_op=True.")
    return receive(function, argument, rank, group)


def _only(function: str, argument: str, parts: Any) -> Tensor:
    """The tensor for the only process: a tensor, or the one element of a list."""
    if isinstance(parts, Tensor):
        return parts
    if not parts or len(parts) != 1:
        raise ValueError(f"[{function}] {argument} must have one tensor, for one process, but has {len(parts or ())}.")
    return parts[0]


def all_reduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """``oar.distributed.all_reduce`` with a choice of the queue.

    Args:
        tensor: the tensor.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> oar.distributed.stream.all_reduce(x, sync_op=False).wait()
        True
    """
    check_op("all_reduce", op)
    return _begin("all_reduce", group, sync_op, use_calc_stream)


def reduce(
    tensor: Tensor, dst: int = 0, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.reduce`` with a choice of the queue.

    Args:
        tensor: the tensor.
        dst: the number of the process that has the result.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> oar.distributed.stream.reduce(oar.ones([2]), dst=0).wait()
        True
    """
    check_op("reduce", op)
    return _begin("reduce", group, sync_op, use_calc_stream, "dst", dst)


def broadcast(
    tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """``oar.distributed.broadcast`` with a choice of the queue.

    Args:
        tensor: the tensor.
        src: the number of the process that has the content.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> oar.distributed.stream.broadcast(oar.ones([2]), src=0).wait()
        True
    """
    return _begin("broadcast", group, sync_op, use_calc_stream, "src", src)


def all_gather(
    tensor_or_tensor_list: Tensor | list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.all_gather`` with a choice of the queue, into a list or one tensor.

    Args:
        tensor_or_tensor_list: a list as for ``oar.distributed.all_gather``, or a tensor for all pieces, one after another.
        tensor: the tensor of this process.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.stream.all_gather(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    task = _begin("all_gather", group, sync_op, use_calc_stream)
    if task is None:
        return None
    if isinstance(tensor_or_tensor_list, Tensor):
        overwrite("all_gather", tensor_or_tensor_list, oar.reshape(tensor, tensor_or_tensor_list.shape))
    else:
        collect("all_gather", tensor_or_tensor_list, tensor)
    return task


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0, group: Group | None = None, sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.gather`` with a choice of the queue.

    Args:
        tensor: the tensor of this process.
        gather_list: an empty list, or one with a tensor for each process, which is overwritten.
        dst: the number of the process that has the result.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> parts = []
        >>> _ = oar.distributed.stream.gather(oar.ones([2]), parts)
        >>> len(parts)
        1
    """
    task = _begin("gather", group, sync_op, use_calc_stream, "dst", dst)
    if gather_list is None:
        raise ValueError("[gather] gather_list is None in the process dst. hint: pass an empty list.")
    if task is not None:
        collect("gather", gather_list, tensor)
    return task


def scatter(
    tensor: Tensor, tensor_or_tensor_list: Tensor | list[Tensor] | None = None, src: int = 0, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.scatter`` with a choice of the queue, from a list or one tensor.

    Args:
        tensor: the tensor to write.
        tensor_or_tensor_list: one tensor for each process, or one tensor with all pieces, in ``src``.
        src: the number of the process that has the pieces.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.stream.scatter(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    task = _begin("scatter", group, sync_op, use_calc_stream, "src", src)
    if task is not None:
        overwrite("scatter", tensor, _only("scatter", "tensor_or_tensor_list", tensor_or_tensor_list))
    return task


def reduce_scatter(
    tensor: Tensor, tensor_or_tensor_list: Tensor | list[Tensor], op: int = ReduceOp.SUM, group: Group | None = None,
    sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.reduce_scatter`` with a choice of the queue, from a list or one tensor.

    Args:
        tensor: the tensor to write.
        tensor_or_tensor_list: one tensor for each process, or one tensor with all pieces.
        op: how to combine: one of ``ReduceOp``.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.stream.reduce_scatter(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    check_op("reduce_scatter", op)
    task = _begin("reduce_scatter", group, sync_op, use_calc_stream)
    if task is not None:
        overwrite("reduce_scatter", tensor, _only("reduce_scatter", "tensor_or_tensor_list", tensor_or_tensor_list))
    return task


def alltoall(
    out_tensor_or_tensor_list: Tensor | list[Tensor], in_tensor_or_tensor_list: Tensor | list[Tensor],
    group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.alltoall`` with a choice of the queue, between lists or between tensors.

    Args:
        out_tensor_or_tensor_list: the list or tensor to write.
        in_tensor_or_tensor_list: one tensor for each process, or one tensor with all pieces.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.stream.alltoall(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    task = _begin("alltoall", group, sync_op, use_calc_stream)
    if task is None:
        return None
    given = _only("alltoall", "in_tensor_or_tensor_list", in_tensor_or_tensor_list)
    if isinstance(out_tensor_or_tensor_list, Tensor):
        overwrite("alltoall", out_tensor_or_tensor_list, given)
    else:
        collect("alltoall", out_tensor_or_tensor_list, given)
    return task


def alltoall_single(
    out_tensor: Tensor, in_tensor: Tensor, out_split_sizes: list[int] | None = None, in_split_sizes: list[int] | None = None,
    group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False,
) -> Task | None:  # fmt: skip
    """``oar.distributed.alltoall_single`` with a choice of the queue.

    Args:
        out_tensor: the tensor to write.
        in_tensor: the tensor to send.
        out_split_sizes: the sizes of the pieces that come; equal if None.
        in_split_sizes: the sizes of the pieces; equal if None.
        group: the processes; None means all.
        sync_op: whether to wait for the result.
        use_calc_stream: accepted for compatibility.

    Returns:
        a task with ``wait()``.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = oar.distributed.stream.alltoall_single(x, oar.to_tensor([1.0, 2.0]))
        >>> x.tolist()
        [1.0, 2.0]
    """
    for name, sizes, tensor in (("in_split_sizes", in_split_sizes, in_tensor), ("out_split_sizes", out_split_sizes, out_tensor)):
        if sizes and list(sizes) != [tensor.shape[0]]:
            raise ValueError(f"[alltoall_single] {name} is {list(sizes)}, but there is one process and {tensor.shape[0]} rows.")
    task = _begin("alltoall_single", group, sync_op, use_calc_stream)
    if task is not None:
        overwrite("alltoall_single", out_tensor, in_tensor)
    return task


def send(
    tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """``oar.distributed.send`` with a choice of the queue.

    Args:
        tensor: the tensor.
        dst: the number of the other process.
        group: the processes; None means all.
        sync_op: whether to wait.
        use_calc_stream: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.distributed.stream.send(oar.ones([2]), dst=0)
        Traceback (most recent call last):
        ...
        ValueError: [send] dst is 0, but there is one process. hint: check get_world_size() first.
    """
    check_peer("send", "dst", dst, group)
    return None


def recv(
    tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True, use_calc_stream: bool = False
) -> Task | None:
    """``oar.distributed.recv`` with a choice of the queue.

    Args:
        tensor: the tensor to write.
        src: the number of the other process.
        group: the processes; None means all.
        sync_op: whether to wait.
        use_calc_stream: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.distributed.stream.recv(oar.ones([2]), src=0)
        Traceback (most recent call last):
        ...
        ValueError: [recv] src is 0, but there is one process. hint: check get_world_size() first.
    """
    check_peer("recv", "src", src, group)
    return None
