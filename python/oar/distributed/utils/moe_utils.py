"""Sending rows to the experts of all processes, and their results back."""

from __future__ import annotations

import itertools
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.distributed.communication.group import Group, get_group

__all__ = ["global_gather", "global_scatter"]


def _counts(function: str, name: str, counts: Any, processes: int) -> list[list[int]]:
    """How many rows of each expert, for each process."""
    flat = [int(n) for n in (counts.flatten().tolist() if isinstance(counts, Tensor) else counts)]
    if not flat or len(flat) % processes or min(flat) < 0:
        raise ValueError(f"[{function}] {name} is {flat}, but must have a number of rows for each expert of each of the {processes} processes.")
    experts = len(flat) // processes
    return [flat[i * experts : (i + 1) * experts] for i in range(processes)]


def _by_expert(counts: list[list[int]]) -> list[int]:
    """The places of rows that came process by process, in the order of the experts; those of an expert stay in order."""
    ends = list(itertools.accumulate(itertools.chain.from_iterable(counts)))
    experts = len(counts[0])
    return [row for expert in range(experts) for process in range(len(counts))
            for end in [ends[process * experts + expert]] for row in range(end - counts[process][expert], end)]


def _exchanged(x: Tensor, sent: list[list[int]], received: list[list[int]], group: Group) -> Tensor:
    if group.nranks == 1:
        return x
    return ops.all_to_all_rows(x, [sum(part) for part in sent], [sum(part) for part in received], group.id)


def _check_rows(function: str, x: Tensor, counts: list[list[int]], name: str) -> None:
    total = sum(map(sum, counts))
    if x.ndim < 1 or x.shape[0] != total:
        raise ValueError(f"[{function}] x has shape {list(x.shape)}, but {name} adds up to {total} rows.")


def _prepared(
    function: str, local_count: Any, global_count: Any, group: Group | None
) -> tuple[Group, list[list[int]], list[list[int]]]:
    among = get_group(0) if group is None else group
    assert among is not None
    return among, _counts(function, "local_count", local_count, among.nranks), _counts(function, "global_count", global_count, among.nranks)


def global_scatter(
    x: Tensor, local_count: Tensor, global_count: Tensor, group: Group | None = None, use_calc_stream: bool = True
) -> Tensor:
    """Sends rows to the processes that have their experts.

    Args:
        x: the rows, in the order of the experts of all processes: those of the first process come first.
        local_count: how many rows go to each expert: ``experts of a process * processes`` numbers.
        global_count: how many rows each process sends to each expert of this one, process by process.
        group: the processes; None means all.
        use_calc_stream: accepted for compatibility.

    Returns:
        the rows for the experts of this process, expert by expert. Their gradients go back.

    Examples:
        >>> import oar
        >>> from oar.distributed.utils import global_scatter
        >>> count = oar.to_tensor([1, 2])
        >>> global_scatter(oar.to_tensor([[1.0], [2.0], [3.0]]), count, count).tolist()
        [[1.0], [2.0], [3.0]]
    """
    if group is not None and group.rank < 0:
        return None  # type: ignore[return-value]
    among, sent, received = _prepared("global_scatter", local_count, global_count, group)
    _check_rows("global_scatter", x, sent, "local_count")
    arrived = _exchanged(x, sent, received, among)
    order = _by_expert(received)
    return arrived if order == sorted(order) else oar.index_select(arrived, oar.to_tensor(order, "int64"))


def global_gather(
    x: Tensor, local_count: Tensor, global_count: Tensor, group: Group | None = None, use_calc_stream: bool = True
) -> Tensor:
    """Sends rows back to the processes that ``global_scatter`` took them from.

    Args:
        x: the rows of the experts of this process, expert by expert.
        local_count: what ``global_scatter`` got.
        global_count: likewise.
        group: the processes; None means all.
        use_calc_stream: accepted for compatibility.

    Returns:
        the rows in the order in which ``global_scatter`` got them. Their gradients go back.

    Examples:
        >>> import oar
        >>> from oar.distributed.utils import global_gather
        >>> count = oar.to_tensor([1, 2])
        >>> global_gather(oar.to_tensor([[1.0], [2.0], [3.0]]), count, count).tolist()
        [[1.0], [2.0], [3.0]]
    """
    if group is not None and group.rank < 0:
        return None  # type: ignore[return-value]
    among, sent, received = _prepared("global_gather", local_count, global_count, group)
    _check_rows("global_gather", x, received, "global_count")
    order = _by_expert(received)
    if order != sorted(order):
        back = sorted(range(len(order)), key=order.__getitem__)
        x = oar.index_select(x, oar.to_tensor(back, "int64"))
    return _exchanged(x, received, sent, among)
