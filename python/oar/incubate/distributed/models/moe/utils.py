"""Where the rows of a batch go, over all processes."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.distributed.communication.group import Group
from oar.distributed.models.moe.utils import _assign_pos, _limit_by_capacity, _number_count, _prune_gate_by_capacity

__all__ = ["count_by_gate", "limit_by_capacity"]


def _swapped(counts: Tensor, group: Group | None) -> Tensor:
    """What all processes count for the experts of this one, from what this one counts for theirs; or the other way round."""
    if group is None or group.nranks == 1:
        return counts
    return ops.all_to_all(counts.reshape([group.nranks, -1]), group.id, group.nranks).reshape([-1])


def count_by_gate(
    gate: Tensor, num_expert: int, world_size: int, require_pos: bool = True, group: Group | None = None
) -> tuple[Any, Tensor, Tensor]:
    """Counts the rows of each expert.

    Args:
        gate: the experts of all rows; -1 is none.
        num_expert: how many experts a process has.
        world_size: how many processes there are.
        require_pos: whether the order of the rows is needed.
        group: the processes.

    Returns:
        the places of the rows in the order of the experts, or None; how many rows of this process each expert gets; and how many
        rows of each process each expert of this one gets.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe.utils import count_by_gate
        >>> places, counts, _ = count_by_gate(oar.to_tensor([2, 0, -1, 2]), 3, 1)
        >>> places.tolist(), counts.tolist()
        ([1, 0, 3], [1, 0, 2])
    """
    with oar.no_grad():
        local = _number_count(gate, num_expert * world_size)
        everywhere = _swapped(local, group)
        places = _assign_pos(gate, oar.cumsum(local)) if require_pos else None
    return places, local, everywhere


def limit_by_capacity(
    topk_idx: Tensor, num_expert: int, world_size: int, capacity: int, group: Group | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Takes rows from experts that get too many, over all processes.

    Args:
        topk_idx: the experts of all rows.
        num_expert: how many experts a process has.
        world_size: how many processes there are.
        capacity: how many rows an expert takes.
        group: the processes.

    Returns:
        how many rows of this process each expert takes; how many rows of each process each expert of this one takes; and the
        experts, -1 where there was no place.

    Examples:
        >>> import oar
        >>> from oar.incubate.distributed.models.moe.utils import limit_by_capacity
        >>> limit_by_capacity(oar.to_tensor([1, 0, 1, 1]), 2, 1, 2)[2].tolist()
        [1, 0, 1, -1]
    """
    with oar.no_grad():
        _, _, asked = count_by_gate(topk_idx, num_expert, world_size, require_pos=False, group=group)
        taken = _limit_by_capacity(asked, oar.full([num_expert], capacity, "int64"), world_size)
        own = _swapped(taken, group)
        return own, taken, _prune_gate_by_capacity(topk_idx, own, num_expert, world_size)
