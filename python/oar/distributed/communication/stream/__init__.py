"""The messages of ``oar.distributed`` with a choice of the queue. The CPU has one, so ``use_calc_stream`` changes nothing."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication._calls import Call, Task, peer_in, sizes_match
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


def _run(call: Call, sync_op: bool, use_calc_stream: bool) -> Task | None:
    """The task of a call; None if this process is not in the group."""
    from oar.distributed.communication._in_program import is_recorded, record

    if use_calc_stream and not sync_op:
        raise RuntimeError(f"[{call.function}] use_calc_stream=True needs sync_op=True.")
    if call.is_member and call.group.nranks > 1 and is_recorded(call):
        return record(call)
    return call.run(sync_op)


def _like(function: str, name: str, given: Tensor, other: Tensor) -> None:
    if given.dtype != other.dtype:
        raise ValueError(f"[{function}] {name} has the dtype {given.dtype}, the other tensor {other.dtype}. hint: make it like the input.")


def _whole_or_list(call: Call, name: str, tensors: Any, like: Tensor) -> list[Tensor]:
    """One tensor with the parts of all processes, or a list with one for each."""
    if isinstance(tensors, Tensor):
        tensors = [tensors]
        if tensors[0].numel() != like.numel() * call.group.nranks:
            raise ValueError(f"[{call.function}] {name} has the shape {tensors[0].shape}, which is not {call.group.nranks} times "
                             f"{like.shape}.")
    else:
        sizes_match(call.function, name, list(tensors), call.group)
        for tensor in tensors:
            if list(tensor.shape) != list(like.shape):
                raise ValueError(f"[{call.function}] {name} has a tensor of the shape {tensor.shape}, but {like.shape} is needed: "
                                 "all have one shape. hint: make them alike.")
    for tensor in tensors:
        _like(call.function, name, tensor, like)
    return list(tensors)


def _filled(parts: list[Tensor], like: Tensor, count: int, call: Call) -> Any:
    """The tensors of a list that a call writes: those in it, or new ones if it is empty."""
    if not parts:
        parts.extend(oar.empty(like.shape, like.dtype) for _ in range(count))
    return _whole_or_list(call, "the list", parts, like)


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
    call = Call("all_reduce", group)
    call.op = check_op("all_reduce", op)
    call.outputs = [tensor]
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("reduce", group)
    call.op, call.peer = check_op("reduce", op), peer_in("reduce", "dst", dst, call.group)
    call.outputs, call.inputs = [tensor], [tensor]
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("broadcast", group)
    call.peer = peer_in("broadcast", "src", src, call.group)
    call.outputs = [tensor]
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("all_gather", group)
    if not call.is_member:
        return None
    call.inputs = [tensor]
    if isinstance(tensor_or_tensor_list, Tensor):
        call.outputs = _whole_or_list(call, "tensor_or_tensor_list", tensor_or_tensor_list, tensor)
    else:
        call.outputs = _filled(tensor_or_tensor_list, tensor, call.group.nranks, call)
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("gather", group)
    call.peer = peer_in("gather", "dst", dst, call.group)
    call.inputs = [tensor]
    if call.is_member and call.group.rank == call.peer:
        if gather_list is None:
            raise ValueError("[gather] gather_list is None in the process dst. hint: pass an empty list.")
        call.outputs = _filled(gather_list, tensor, call.group.nranks, call)
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("scatter", group)
    call.peer = peer_in("scatter", "src", src, call.group)
    call.outputs = [tensor]
    if call.is_member and call.group.rank == call.peer:
        if tensor_or_tensor_list is None:
            raise ValueError("[scatter] there is nothing to send in the process src. hint: pass one tensor for each process.")
        call.inputs = _whole_or_list(call, "tensor_or_tensor_list", tensor_or_tensor_list, tensor)
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("reduce_scatter", group)
    call.op = check_op("reduce_scatter", op)
    if not call.is_member:
        return None
    call.outputs = [tensor]
    call.inputs = _whole_or_list(call, "tensor_or_tensor_list", tensor_or_tensor_list, tensor)
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("alltoall", group)
    if not call.is_member:
        return None
    given, wanted = in_tensor_or_tensor_list, out_tensor_or_tensor_list
    if isinstance(given, Tensor) and isinstance(wanted, Tensor):
        if list(given.shape) != list(wanted.shape) or not given.shape or given.shape[0] % call.group.nranks:
            raise ValueError(f"[alltoall] the input has the shape {given.shape} and the output {wanted.shape}. hint: they must be "
                             f"alike, with a number of rows that {call.group.nranks} divides.")
        call.inputs, call.outputs = [given], [wanted]
    elif isinstance(given, Tensor) or isinstance(wanted, Tensor):
        raise RuntimeError("[alltoall] the input and the output must both be lists or both tensors.")
    else:
        call.inputs = sizes_match("alltoall", "the input", list(given), call.group)
        if not wanted:
            wanted.extend(oar.empty_like(tensor) for tensor in given)
        call.outputs = sizes_match("alltoall", "the output", list(wanted), call.group)
    for tensor in (*call.inputs, *call.outputs):
        _like("alltoall", "a tensor", tensor, call.inputs[0])
    return _run(call, sync_op, use_calc_stream)


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
    call = Call("alltoall_single", group, "alltoall")
    if not call.is_member:
        return None
    call.inputs = _rows(call, "in_split_sizes", in_split_sizes, in_tensor)
    pieces = _rows(call, "out_split_sizes", out_split_sizes, out_tensor)
    _like("alltoall_single", "out_tensor", out_tensor, in_tensor)
    if not in_split_sizes and not out_split_sizes:
        call.inputs, call.outputs = [in_tensor], [out_tensor]
        return _run(call, sync_op, use_calc_stream)
    if in_split_sizes is None or out_split_sizes is None:
        call.inputs, pieces = [piece.contiguous() for piece in call.inputs], [piece.contiguous() for piece in pieces]
    call.outputs = pieces
    return _run(call, sync_op, use_calc_stream)


def _rows(call: Call, name: str, sizes: list[int] | None, tensor: Tensor) -> list[Tensor]:
    """The pieces of a tensor that go to the processes or come from them: parts of its memory."""
    count, rows = call.group.nranks, tensor.shape[0] if tensor.shape else 0
    if not sizes:
        if rows % count:
            raise ValueError(f"[alltoall_single] {count} processes do not divide {rows} rows. hint: pass {name}.")
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows or min(sizes) < 0:
        raise ValueError(f"[alltoall_single] {name} is {list(sizes)}, but there {_are(count)} and {rows} rows.")
    ends = [sum(sizes[: i + 1]) for i in range(count)]
    with oar.no_grad():
        return [tensor[end - size : end] for end, size in zip(ends, sizes)]


def _are(count: int) -> str:
    return "is one process" if count == 1 else f"are {count} processes"


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
    return message("send", tensor, dst, group, sync_op, use_calc_stream)


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
    return message("recv", tensor, src, group, sync_op, use_calc_stream)


def message(
    function: str, tensor: Tensor, rank: int | None, group: Group | None, sync_op: bool, use_calc_stream: bool = False, tag: int = 0
) -> Task | None:
    """A message to or from the process ``rank``: ``function`` is send, recv, isend or irecv."""
    sends = function in ("send", "isend")
    call = Call(function, group, "send" if sends else "recv")
    if call.group.nranks == 1:
        raise ValueError(f"[{function}] {'dst' if sends else 'src'} is {rank}, but there is one process. "
                         "hint: check get_world_size() first.")
    call.peer, call.tag = peer_in(function, "dst" if sends else "src", rank, call.group), tag
    if call.peer == call.group.rank:
        raise ValueError(f"[{function}] {'dst' if sends else 'src'} is {rank}, which is this process. hint: pass another.")
    if sends:
        call.inputs = [tensor]
    else:
        call.outputs = [tensor]
    return _run(call, sync_op, use_calc_stream)
