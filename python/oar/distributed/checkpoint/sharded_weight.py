"""Pieces of tensors: what a process has of a tensor that several processes divide."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Union

from oar._C import Tensor
from oar._lazy import np
from oar.distributed.checkpoint._boxes import Box, have_common, run_of_boxes
from oar.distributed.communication.group import Group
from oar.framework.parameter import dtype_name

__all__ = ["ShardedStateDict", "ShardedWeight", "build_sharded_state_dict", "shard_weight"]


# The beginning and the sizes of a box, and which of its elements: all if None.
Place = tuple[Any, Any, Any]


class ShardedWeight:
    """A piece of a tensor that several processes divide.

    Args:
        key: the name of the tensor in checkpoints.
        local_tensor: the elements of the piece.
        local_shape: the sizes of the box of the tensor that the piece is, or is in.
        global_shape: the sizes of the whole tensor.
        global_offset: where the box begins in the tensor.
        is_flattened: whether the piece is a run of the elements of the box, a tensor with one axis.
        flattened_range: which elements then, a slice: counted within the box, in the order of memory.

    Examples:
        >>> import oar
        >>> from oar.distributed import ShardedWeight
        >>> rows = ShardedWeight("weight", oar.ones([2, 3]), (2, 3), global_shape=(4, 3), global_offset=(2, 0))
        >>> run = ShardedWeight("weight", oar.ones([5]), (4, 3), (4, 3), (0, 0), is_flattened=True, flattened_range=slice(1, 6))
        >>> rows.global_shape, run.flattened_range
        ((4, 3), slice(1, 6, None))
    """

    def __init__(
        self, key: str, local_tensor: Tensor, local_shape: tuple[int, ...], global_shape: tuple[int, ...],
        global_offset: tuple[int, ...], is_flattened: bool = False, flattened_range: slice | None = None,
    ) -> None:  # fmt: skip
        self.key, self.local_tensor = key, local_tensor
        self.local_shape, self.global_shape, self.global_offset = tuple(local_shape), tuple(global_shape), tuple(global_offset)
        self.is_flattened, self.flattened_range = is_flattened, flattened_range
        self._check()

    def _check(self) -> None:
        box = self.local_shape, self.global_shape, self.global_offset
        if len({len(sizes) for sizes in box}) != 1 or any(
                offset < 0 or offset + size > whole for size, whole, offset in zip(*box)):
            raise ValueError(f"[ShardedWeight] {self.key}: a box of the shape {list(self.local_shape)} at {list(self.global_offset)} is "
                             f"not within a tensor of the shape {list(self.global_shape)}.")
        wanted = list(self.local_shape)
        if self.is_flattened:
            run = self.flattened_range
            if not isinstance(run, slice) or not 0 <= run.start <= run.stop <= math.prod(self.local_shape):
                raise ValueError(f"[ShardedWeight] {self.key}: flattened_range must be a slice of the {math.prod(self.local_shape)} "
                                 f"elements of the box, not {run!r}.")
            wanted = [run.stop - run.start]
        if list(self.local_tensor.shape) != wanted:
            raise ValueError(f"[ShardedWeight] {self.key}: local_tensor has the shape {list(self.local_tensor.shape)}, but the piece "
                             f"has {wanted}.")

    def place(self) -> Place:
        """Which elements these are: equal for copies of one piece."""
        run = self.flattened_range if self.is_flattened else None
        return self.global_offset, self.local_shape, None if run is None else (run.start, run.stop)

    def __repr__(self) -> str:
        run = f", elements {self.flattened_range.start}:{self.flattened_range.stop}" if self.flattened_range else ""
        return (f"ShardedWeight({self.key!r}, {dtype_name(self.local_tensor.dtype)}{list(self.local_shape)} at "
                f"{list(self.global_offset)} of {list(self.global_shape)}{run})")


ShardedStateDict = Union[dict[str, ShardedWeight], OrderedDict[str, ShardedWeight]]


def boxes_of(place: Place) -> list[Box]:
    """The boxes of the whole tensor that a piece consists of, in the order of its elements."""
    offset, shape, run = place
    if run is None:
        return [(tuple(offset), tuple(shape))]
    return [(tuple(o + b for o, b in zip(offset, begin)), sizes) for begin, sizes in run_of_boxes(shape, *run)]


def parts_of(place: Place, array: np.ndarray) -> list[tuple[Box, np.ndarray]]:
    """The same, each box with its elements: views of ``array``."""
    if place[2] is None:
        return [(boxes_of(place)[0], array)]
    parts, position = [], 0
    for box in boxes_of(place):
        count = math.prod(box[1])
        parts.append((box, array[position : position + count].reshape(box[1])))
        position += count
    return parts


def size_of(place: Place) -> int:
    """How many elements a piece has."""
    _, shape, run = place
    return math.prod(shape) if run is None else run[1] - run[0]


def overlap(a: Place, b: Place) -> bool:
    """Whether two pieces of a tensor have an element in common."""
    if not have_common((tuple(a[0]), tuple(a[1])), (tuple(b[0]), tuple(b[1]))):
        return False
    if a[:2] == b[:2] and a[2] is not None and b[2] is not None:
        return max(a[2][0], b[2][0]) < min(a[2][1], b[2][1])
    return any(have_common(one, other) for one in boxes_of(a) for other in boxes_of(b))


def whole(key: str, tensor: Tensor) -> ShardedWeight:
    """A tensor that is not divided, as a piece."""
    shape = tuple(tensor.shape)
    return ShardedWeight(key, tensor, shape, shape, (0,) * len(shape))


def shard_weight(key: str, weight: Tensor, axis: int, group: Group) -> ShardedWeight:
    """The piece of a process that has an equal part of a tensor along an axis.

    Args:
        key: the name of the tensor in checkpoints.
        weight: the part.
        axis: the axis.
        group: the processes that divide the tensor, in order.

    Returns:
        a ``ShardedWeight``.

    Examples:
        >>> import oar
        >>> from oar.distributed import new_group, shard_weight
        >>> shard_weight("weight", oar.ones([2, 3]), 0, new_group([0])).global_shape
        (2, 3)
    """
    shape = tuple(weight.shape)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"[shard_weight] axis is {axis}, but {key} has {len(shape)} axes.")
    axis %= len(shape)
    global_shape = tuple(size * group.nranks if i == axis else size for i, size in enumerate(shape))
    offset = tuple(size * max(group.rank, 0) if i == axis else 0 for i, size in enumerate(shape))
    return ShardedWeight(key, weight, shape, global_shape, offset)


def build_sharded_state_dict(
    state_dict: Mapping[str, Tensor], shard_rules: Mapping[str, int] | None = None, prefix: str = ""
) -> dict[str, ShardedWeight]:
    """The states of a layer as pieces, for ``save_state_dict``.

    Args:
        state_dict: the states.
        shard_rules: for states that the tensor-parallel processes divide, the axis.
        prefix: what the names begin with.

    Returns:
        a ``ShardedWeight`` for each state.

    Examples:
        >>> import oar
        >>> pieces = oar.distributed.build_sharded_state_dict(oar.nn.Linear(2, 3).state_dict(), prefix="head.")
        >>> pieces["head.weight"].global_shape
        (2, 3)
    """
    rules = dict(shard_rules or {})
    unknown = [name for name in rules if name not in state_dict]
    if unknown:
        raise ValueError(f"[build_sharded_state_dict] shard_rules has {', '.join(unknown)}, which the state dict does not have.")
    pieces = {}
    for name, tensor in state_dict.items():
        key = f"{prefix}{name}"
        pieces[key] = shard_weight(key, tensor, rules[name], _tensor_parallel_group()) if name in rules else whole(key, tensor)
    return pieces


def _tensor_parallel_group() -> Group:
    from oar.distributed.fleet import _process

    return _process.fleet.get_hybrid_communicate_group().get_model_parallel_group()
