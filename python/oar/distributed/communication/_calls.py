"""One call of a group: what goes in, what comes out, and the task that is returned."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.distributed.communication.group import Group, get_group, is_member
from oar.distributed.environment import get_world_size, job

__all__ = ["Call", "Task", "peer_in", "sizes_match"]


class Task:
    """A call that may still be under way. Its tensors must not be read or written before ``wait`` has returned.

    Args:
        native: the call; None if it is done.
        finish: what is left to do then.
    """

    def __init__(self, native: Any = None, finish: Callable[[], None] | None = None) -> None:
        self._native, self._finish = native, finish

    def wait(self, timeout: Any = None) -> bool:
        """Waits for the end of the call, and raises its error if it failed.

        Args:
            timeout: the most time to wait, in milliseconds or as a ``timedelta``; None waits as long as the group does.

        Returns:
            True.
        """
        if self._native is not None:
            limit = int(timeout.total_seconds() * 1000) if isinstance(timeout, timedelta) else timeout
            self._native.wait(limit)
            self._native = None
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()
        return True

    def is_completed(self) -> bool:
        """Whether the call has ended."""
        return self._native is None or self._native.is_done()

    def synchronize(self) -> None:
        """Waits for the end of the call."""
        self.wait()


def peer_in(function: str, argument: str, rank: int | None, group: Group) -> int:
    """The number in the group of a process that is given by its number in the world."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"[{function}] {argument} must be the number of a process, not {rank!r}.")
    number = group.get_group_rank(rank)
    if number < 0:
        others = (f"there is one process, with the number {group.ranks[0]}" if group.nranks == 1
                  else f"the group has the processes {group.ranks}")
        raise ValueError(f"[{function}] {argument} is {rank}, but {others}. hint: pass a member of the group.")
    return number


def sizes_match(function: str, name: str, tensors: list[Tensor], group: Group) -> list[Tensor]:
    """The tensors, if there is one for each process and all are alike."""
    if len(tensors) != group.nranks:
        raise ValueError(f"[{function}] {name} must have one tensor for each of the {group.nranks} processes, but has {len(tensors)}.")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"[{function}] {name} must have tensors, not {type(tensor).__name__}.")
    return tensors


class Call:
    """A call of a group.

    Args:
        function: its name, for errors.
        group: the processes; None means all.
        what: the name of the collective, if it is another.
    """

    def __init__(self, function: str, group: Group | None, what: str | None = None) -> None:
        self.function, self.what = function, what or function
        found = get_group(0) if group is None else group
        assert found is not None
        self.group: Group = found
        self.is_member = is_member(group)
        self.outputs: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.op = self.peer = self.tag = 0

    def _check_connected(self) -> None:
        if get_world_size() > 1 and not job.started:
            raise RuntimeError(f"[{self.function}] the {get_world_size()} processes are not connected. "
                               "hint: call init_parallel_env() first.")

    def begin(self) -> Task:
        """Starts the call."""
        self._check_connected()
        for given in (*self.outputs, *self.inputs):
            if not isinstance(given, Tensor):
                raise TypeError(f"[{self.function}] tensors can be sent, and this is a {type(given).__name__}. hint: oar.to_tensor makes one of it.")
        if self.group.nranks == 1:
            self._run_alone()
            return Task()
        outputs = [output if output.is_contiguous() else output.contiguous() for output in self.outputs]
        inputs = [given.contiguous() for given in self.inputs]
        pairs = [(to, temporary) for to, temporary in zip(self.outputs, outputs) if to is not temporary]
        native = _C.group_start(self.group.id, self.what, outputs, inputs, self.op, self.peer, self.tag)
        return Task(native, (lambda: _copy_back(pairs)) if pairs else None)

    def run(self, sync_op: bool = True) -> Task | None:
        """Starts the call, and waits for it if ``sync_op``. None if this process is no member."""
        if not self.is_member:
            return None
        task = self.begin()
        if sync_op:
            task.wait()
        return task

    def _run_alone(self) -> None:
        for to, given in zip(self.outputs, self.inputs):
            if list(to.shape) != list(given.shape):
                given = oar.reshape(given, to.shape)
            _copy_back([(to, given)])


def _copy_back(pairs: list[tuple[Tensor, Tensor]]) -> None:
    with oar.no_grad():
        for to, value in pairs:
            to.copy_(value)
