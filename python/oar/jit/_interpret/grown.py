"""Lists to which a branch or a loop on tensors appends: the number of items is known only at run time.

Such a list holds what it had before, then a ``Rows``: a tensor whose rows are the items that were appended. It can be
appended to, and passed to ``stack`` and ``concat``; any other read is declined.
"""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar._questions import sizes_tensor
from oar.jit._interpret.world import Decline, World

__all__ = ["Grown", "Rows", "asked", "common_start", "forget", "is_grown", "joined", "rows_of", "stacked", "taken"]

_REASON = "how many items a list has depends on a tensor: only stack and concat can take it"


class Grown(str):
    """Why the content of a list is not known: it was appended to."""


class Rows:
    """Items of a list, as the rows of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def is_grown(world: World, value: Any) -> bool:
    return isinstance(world.unknown.get(id(value)), Grown)


def forget(unknown: dict[int, str], reasons: dict[int, str]) -> bool:
    """Adds reasons why contents are not known; nothing is known of a list that has only grown elsewhere. True if new."""
    new = {key: reason for key, reason in reasons.items()
           if key not in unknown or isinstance(unknown[key], Grown) and not isinstance(reason, Grown)}
    unknown.update(new)
    return bool(new)


def asked(machine: Any, items: list) -> Tensor:
    """Whether any of the items requires a gradient."""
    flags = [machine.as_tensor(machine.asks(item.tensor if isinstance(item, Rows) else item)) for item in items]
    return machine.any_of([machine.as_tensor(False), *flags])


def taken(world: World, key: int, start: list, rows: Tensor) -> list:
    """The content of the list after a branch or loop."""
    world.unknown[key] = Grown(_REASON)
    return [*start, Rows(rows)]


def common_start(a: list, b: list) -> int:
    """How many items two lists have in common, before rows."""
    count = 0
    for x, y in zip(a, b):
        if x is not y or isinstance(x, Rows):
            break
        count += 1
    return count


def rows_of(machine: Any, items: list, like: list) -> tuple[Any, list]:
    """The dtype and the sizes of the items; ``like``: other items that must be of the same kind."""
    kinds = []
    for item in [*items, *like]:
        tensor = item.tensor if isinstance(item, Rows) else item
        if not isinstance(tensor, Tensor) or machine.kind_of(tensor) is not None:
            raise Decline("a list to which a branch on a tensor appends holds more than tensors")
        kinds.append((tensor.dtype, list(tensor.shape)[isinstance(item, Rows):]))
    if not kinds or any(kind != kinds[0] for kind in kinds):
        raise Decline("a branch on a tensor appends tensors of different kinds to a list")
    if any(type(d) is _C.Dim and d.is_told for d in kinds[0][1]):
        raise Decline("a branch on a tensor appends tensors to a list whose sizes depend on values")
    return kinds[0]


def stacked(items: list, dtype: Any, shape: list) -> Tensor:
    """All items as the rows of one tensor."""
    ops = _C.ops
    parts = [item.tensor if isinstance(item, Rows) else ops.stack([item], 0) for item in items]
    if not parts:
        return ops.zeros([0, *shape], dtype)
    return ops.assign(parts[0]) if len(parts) == 1 else ops.concat(parts, 0)


def joined(machine: Any, what: str, items: list, axis: Any = 0) -> Tensor:
    """``stack`` or ``concat`` of a list with rows."""
    dtype, shape = rows_of(machine, items, [])
    rank = len(shape) + (what == "stack")
    if type(axis) is not int or not -rank <= axis < rank:
        raise Decline(f"{what} gets the axis {axis!r}")
    axis %= rank
    made = machine.on_tensors(lambda: stacked(items, dtype, shape), [i.tensor if isinstance(i, Rows) else i for i in items])
    if all(isinstance(item, Rows) for item in items):  # it may be empty, which is an error
        machine.raised.append(_C.ops.equal(sizes_tensor([made.shape[0]], "int64").reshape([]), machine.as_tensor(0)))

    def arranged() -> Tensor:
        moved = _C.ops.moveaxis(made, 0, axis)
        if what == "stack":
            return moved
        sizes = list(moved.shape)
        return _C.ops.reshape(moved, [*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2:]])

    return made if what == "stack" and not axis else machine.on_tensors(arranged, made)
