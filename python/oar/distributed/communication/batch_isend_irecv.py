"""Messages between pairs of processes that are all under way at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar._C import Tensor
from oar.distributed.communication._calls import Task
from oar.distributed.communication.group import Group

__all__ = ["P2POp", "batch_isend_irecv"]


class P2POp:
    """A message for ``batch_isend_irecv``.

    Args:
        op: ``oar.distributed.isend`` or ``oar.distributed.irecv``.
        tensor: the tensor to send or to write.
        peer: the number of the other process.
        group: the processes; None means all.

    Examples:
        >>> import oar
        >>> oar.distributed.P2POp(oar.distributed.isend, oar.ones([2]), 1).peer
        1
    """

    def __init__(self, op: Callable[..., Any], tensor: Tensor, peer: int, group: Group | None = None) -> None:
        from oar.distributed import communication

        if op not in (communication.isend, communication.irecv):
            raise RuntimeError("[P2POp] op must be oar.distributed.isend or oar.distributed.irecv.")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Task]:
    """Starts messages, and returns a task for each.

    Args:
        p2p_op_list: the messages, of one group.

    Returns:
        a list of tasks with ``wait()``.

    Examples:
        >>> import oar
        >>> oar.distributed.batch_isend_irecv([])
        []
    """
    if any(message.group is not p2p_op_list[0].group for message in p2p_op_list):
        raise RuntimeError("[batch_isend_irecv] all messages must be of one group.")
    tasks = [message.op(message.tensor, message.peer, message.group) for message in p2p_op_list]
    return [task for task in tasks if task is not None]
