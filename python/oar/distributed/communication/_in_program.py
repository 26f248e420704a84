"""Calls of a group as ops: in programs, where they are recorded. The ops have derivatives."""

from __future__ import annotations

import oar
from oar import _C
from oar._C import Tensor, ops
from oar.distributed.communication._calls import Call, Task
from oar.distributed.communication._reduce_op import NAMES

__all__ = ["is_recorded", "record"]


def is_recorded(call: Call) -> bool:
    """Whether the call becomes a part of a program."""
    tensors = (*call.outputs, *call.inputs)
    return _C.is_capturing() or _C.static_active() or any(_C.is_symbolic(tensor) for tensor in tensors)


def _write(to: list[Tensor], value: Tensor) -> None:
    with oar.no_grad():
        if len(to) == 1:
            to[0].copy_(oar.reshape(value, to[0].shape))
        else:
            for output, part in zip(to, oar.unstack(value)):
                output.copy_(part)


def _parts(tensors: list[Tensor], count: int) -> Tensor:
    """One part for each process along the first axis."""
    if len(tensors) == count and count > 1:
        return oar.stack(tensors)
    tensor = tensors[0]
    return oar.reshape(tensor, [count, tensor.shape[0] // count, *tensor.shape[1:]] if tensor.shape else [count])


def record(call: Call) -> Task:
    """Adds the op of a call to the program."""
    group, count, op = call.group.id, call.group.nranks, NAMES[call.op]
    is_root = call.group.rank == call.peer
    to, given = call.outputs, call.inputs
    if call.what == "all_reduce":
        _write(to, ops.all_reduce(to[0], op, group, count))
    elif call.what == "broadcast":
        _write(to, ops.broadcast_from(to[0], call.peer, group, count))
    elif call.what == "reduce":
        value = ops.reduce_to(given[0], call.peer, op, group, count)
        if is_root:
            _write(to, value)
    elif call.what == "all_gather":
        _write(to, ops.all_gather(given[0], group, count))
    elif call.what == "reduce_scatter":
        parts = oar.reshape(_parts(given, count), [count, *to[0].shape])
        _write(to, ops.reduce_scatter(parts, op, group, count))
    elif call.what == "alltoall":
        _exchange(call, group, count)
    elif call.what == "gather":
        value = ops.gather_to(given[0], call.peer, group, count)
        if is_root:
            _write(to, value)
    elif call.what == "scatter":
        blank = oar.zeros([count, *to[0].shape], to[0].dtype)
        parts = oar.reshape(_parts(given, count), [count, *to[0].shape]) if is_root else blank
        _write(to, ops.scatter_from(parts, call.peer, group, count))
    elif call.what == "barrier":
        ops.all_reduce(oar.zeros([1]), "sum", group, count)
    else:
        raise NotImplementedError(f"[{call.function}] messages between two processes are not captured. "
                                  "hint: call it outside the captured function, or use alltoall_single.")
    return Task()


def _exchange(call: Call, group: int, count: int) -> None:
    to, given = call.outputs, call.inputs
    if len(given) == len(to) == 1 or all(t.shape == given[0].shape for t in (*given, *to)):
        _write(to, ops.all_to_all(_parts(given, count), group, count))
        return
    received = ops.all_to_all_rows(oar.concat(given), [t.shape[0] for t in given], [t.shape[0] for t in to], group)
    for output, part in zip(to, oar.split(received, [t.shape[0] for t in to])):
        _write([output], part)
