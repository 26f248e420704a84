"""Saving: each process writes what no other one writes, and the list is written when all pieces are on the disk."""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import oar
from oar._lazy import np
from oar.distributed.checkpoint._flat import as_json, flattened
from oar.distributed.checkpoint.metadata import ShardedCheckpointError, data_file, list_file, numbers_in, write_list
from oar.distributed.checkpoint.sharded_weight import ShardedWeight, overlap, size_of
from oar.distributed.communication import all_gather_object
from oar.distributed.communication.group import Group, _get_global_group, beside
from oar.framework import safetensors
from oar.framework._async_save import Task, _tasks, copied
from oar.framework._replace import replace_files
from oar.framework.io import tensor_to_array
from oar.framework.parameter import dtype_name

__all__ = ["save_state_dict"]

_FUNCTION = "save_state_dict"
_running: dict[str, Task] = {}  # by folder


def save_state_dict(
    state_dict: dict[str, Any], path: str, process_group: Group | None = None, coordinator_rank: int = 0, async_save: bool = False,
    *, unique_id: int | None = None, keep: int | None = None,
) -> None:  # fmt: skip
    """Saves states of all processes in one folder. All of them call it.

    A tensor that all processes have is written by one of them; a ``ShardedWeight`` is a piece of a tensor. A folder may have several
    checkpoints: each call adds one. It is complete, and loaded from then on, when the file with the list of its pieces has appeared,
    which is after all pieces are on the disk. A process that is killed before leaves the earlier checkpoints as they were.

    Args:
        state_dict: tensors, pieces, numbers, strings, and nested dicts of them.
        path: the folder; all processes see it.
        process_group: the processes; None means all.
        coordinator_rank: the number of the process that writes the list.
        async_save: whether to copy the tensors and write them in a thread. The next save in the folder waits for it, and
            ``oar.clear_async_save_task_queue`` does; both raise its error.
        unique_id: the number of the checkpoint; None takes the next one.
        keep: how many checkpoints the folder keeps, the newest ones; None keeps all.

    Examples:
        >>> import tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> net = oar.nn.Linear(2, 3)
        >>> oar.distributed.save_state_dict(net.state_dict(), folder)
        >>> twin = oar.nn.Linear(2, 3)
        >>> oar.distributed.load_state_dict(twin.state_dict(), folder)
        >>> oar.equal_all(net.weight, twin.weight).item()
        True
    """
    if keep is not None and keep < 1:
        raise ValueError(f"[{_FUNCTION}] keep is {keep}: at least one checkpoint stays. hint: pass None to keep all.")
    path = os.path.realpath(path)
    group = _get_global_group() if process_group is None else process_group
    if coordinator_rank not in group.ranks:
        raise ValueError(f"[{_FUNCTION}] coordinator_rank is {coordinator_rank}, but the group has the processes {group.ranks}.")
    if group.rank < 0:
        return
    if (before := _running.pop(path, None)) is not None:
        if before in _tasks:
            _tasks.remove(before)
        before.finish()
    is_coordinator = group.ranks[group.rank] == coordinator_rank
    plan = _Plan(state_dict, path, group, is_coordinator, unique_id)
    if not async_save:
        plan.write(group, keep)
        return
    plan.copy()
    task = Task(plan.write, beside(group, "checkpoints"), keep)
    _running[path] = task
    _tasks.append(task)
    task.start()


def _agreed(group: Group, work: Callable[[], Any]) -> list[Any]:
    """What ``work`` returns in each process; its error, if it failed in one of them, in all."""
    failure: Exception | None = None
    try:
        own: tuple[Any, str] = (work(), "")
    except Exception as error:  # the others must hear of it
        failure, own = error, (None, f"{type(error).__name__}: {error}")
    found: list[Any] = []
    all_gather_object(found, own, group)
    if failure is not None:
        raise failure
    for rank, (_, text) in zip(group.ranks, found):
        if text:
            raise ShardedCheckpointError(f"[{_FUNCTION}] nothing was saved, because rank {rank} failed: {text}")
    return [result for result, _ in found]


class _Plan:
    """Which process writes what. All processes make the same plan."""

    def __init__(self, state_dict: Any, path: str, group: Group, is_coordinator: bool, number: int | None) -> None:
        self.path, self.is_coordinator, self.place = path, is_coordinator, group.rank

        def described() -> dict[str, Any]:
            self.pieces, values = flattened(_FUNCTION, state_dict)
            chosen = None
            if is_coordinator:
                os.makedirs(path, exist_ok=True)
                chosen = _next_number(path) if number is None else number
            tensors = {name: (dtype_name(piece.local_tensor.dtype), piece.global_shape, piece.place()) for name, piece in self.pieces.items()}
            return {"number": chosen, "tensors": tensors, "values": {name: as_json(_FUNCTION, name, value) for name, (value, _) in values.items()}}

        found = _agreed(group, described)
        self.number: int = next(one["number"] for one in found if one["number"] is not None)
        self.values: dict[str, Any] = {}
        for one in reversed(found):
            self.values.update(one["values"])
        self.tensors: dict[str, dict[str, Any]] = {}
        self.own: list[str] = []
        self._divide([one["tensors"] for one in found])

    def _divide(self, found: list[dict[str, Any]]) -> None:
        loads = [0] * len(found)
        owners: dict[str, dict[Any, list[int]]] = {}
        for rank, tensors in enumerate(found):
            for name, (dtype, shape, place) in tensors.items():
                known = self.tensors.setdefault(name, {"dtype": dtype, "shape": list(shape), "pieces": []})
                if known["dtype"] != dtype or known["shape"] != list(shape):
                    raise ShardedCheckpointError(f"[{_FUNCTION}] {name} is {dtype}{list(shape)} in one process and "
                                                 f"{known['dtype']}{known['shape']} in another.")
                owners.setdefault(name, {}).setdefault(place, []).append(rank)
        for name in sorted(owners):
            count = 0
            for place, ranks in owners[name].items():
                rank = min(ranks, key=lambda rank: loads[rank])
                size = size_of(place)
                loads[rank] += size
                count += size
                file_name = f"{name}{_suffix(place, self.tensors[name]['shape'])}"
                self.tensors[name]["pieces"].append({"rank": rank, "name": file_name, "offset": place[0], "shape": place[1], "run": place[2]})
                if rank == self.place:
                    self.own.append(name)
            self._check_parts(name, list(owners[name]))
            if count < math.prod(self.tensors[name]["shape"]):
                raise ShardedCheckpointError(f"[{_FUNCTION}] the processes have {count} of the {math.prod(self.tensors[name]['shape'])} "
                                             f"elements of {name}.")

    def _check_parts(self, name: str, places: list[Any]) -> None:
        for i, place in enumerate(places):
            for other in places[:i]:
                if overlap(place, other):
                    raise ShardedCheckpointError(f"[{_FUNCTION}] pieces of {name} overlap: {_suffix(other, [])} and {_suffix(place, [])}. hint: "
                                                 "processes may have equal pieces, or pieces without common elements.")

    def copy(self) -> None:
        """The tensors may change from now on."""
        for name in self.own:
            piece = self.pieces[name]
            self.pieces[name] = ShardedWeight(piece.key, copied(piece.local_tensor), piece.local_shape, piece.global_shape,
                                              piece.global_offset, piece.is_flattened, piece.flattened_range)

    def write(self, group: Group, keep: int | None) -> None:
        """Writes the pieces of this process, and the list when all have done so."""
        sums = _agreed(group, self._write_pieces)
        _agreed(group, lambda: self._complete(sums, keep) if self.is_coordinator else None)

    def _write_pieces(self) -> dict[str, int]:
        arrays: dict[str, tuple[np.ndarray, str]] = {}
        sums: dict[str, int] = {}
        for name in self.own:
            piece = self.pieces[name]
            array = tensor_to_array(piece.local_tensor)
            array = np.ascontiguousarray(array).reshape(array.shape)  # which makes a vector of a number
            file_name = f"{name}{_suffix(piece.place(), list(piece.global_shape))}"
            arrays[file_name] = array, self.tensors[name]["dtype"]
            sums[file_name] = checksum(array)
        file = os.path.join(self.path, data_file(self.place, self.number))
        replace_files({file: lambda opened: safetensors.save_arrays(opened, arrays)})
        self.pieces = {}
        return sums

    def _complete(self, sums: list[dict[str, int]], keep: int | None) -> None:
        for tensor in self.tensors.values():
            for piece in tensor["pieces"]:
                rank = piece.pop("rank")
                piece.update(file=data_file(rank, self.number), crc32=sums[rank][piece["name"]])
        write_list(self.path, self.number, {"oar": oar.__version__, "tensors": self.tensors, "values": self.values})
        _remove_older(self.path, self.number, keep)


def checksum(array: np.ndarray) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _suffix(place: tuple[Any, ...], shape: list[int]) -> str:
    """What distinguishes the pieces of a tensor in one file."""
    offset, sizes, run = place
    if run is None and list(sizes) == shape:
        return ""
    text = ",".join(f"{o}:{o + size}" for o, size in zip(offset, sizes))
    return f"[{text}]" + ("" if run is None else f"({run[0]}:{run[1]})")


def _next_number(path: str) -> int:
    complete, files = numbers_in(path)
    return max([-1, *complete, *files]) + 1


def _remove_older(path: str, number: int, keep: int | None) -> None:
    """Removes checkpoints that are not kept, and what killed processes left."""
    complete, files = numbers_in(path)
    kept = complete if keep is None else complete[-keep:]
    with suppress(OSError):
        for other in complete:
            if other not in kept:
                os.unlink(os.path.join(path, list_file(other)))
        for other, names in files.items():
            if other < number and other not in kept:
                for name in names:
                    os.unlink(os.path.join(path, name))
        for name in os.listdir(path):
            left = re.fullmatch(r"\.(?:\d+_)?(\d+)\.(?:distcp|metadata)\..*\.tmp", name)
            if left is not None and int(left[1]) < number:
                os.unlink(os.path.join(path, name))
