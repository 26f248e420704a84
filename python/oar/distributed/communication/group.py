"""Groups of processes."""

from __future__ import annotations

import itertools
import warnings
from datetime import timedelta
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.distributed.environment import ParallelEnv, get_rank, get_world_size, job, leave

__all__ = [
    "Group",
    "barrier",
    "beside",
    "check_alone",
    "connect",
    "destroy_process_group",
    "disconnect_all",
    "get_group",
    "is_member",
    "new_group",
    "restart_process_group",
    "shutdown_process_group",
    "wait",
]

_groups: dict[int, Group] = {}
_numbers = itertools.count(1)  # processes make groups in the same order, so these agree
_connected: dict[int, str] = {}  # the engines of groups
_beside: dict[tuple[int, str], Group] = {}
_FIRST_BESIDE = 1 << 20
_restarts: dict[int, tuple[int, tuple[str, list[int], str, int]]] = {}  # how often, and what it takes


def connect(number: int, engine: str, ranks: list[int], name: str, timeout_ms: int) -> None:
    """Connects the members of a group; all call this."""
    _C.group_make(number, engine, ranks, get_rank(), name, job.store, timeout_ms)
    _connected[number] = engine
    _restarts.setdefault(number, (0, (engine, ranks, name, timeout_ms)))


def disconnect_all() -> None:
    """Closes the connections of all groups."""
    for number in sorted(_connected, reverse=True):
        _C.group_remove(number)
    _connected.clear()
    _restarts.clear()
    _groups.clear()
    _beside.clear()


def beside(group: Group, what: str) -> Group:
    """A second group of the same processes, for a thread that talks while the program does. All members call this; the group is made
    once."""
    if group.nranks == 1:
        return group
    key = group.id, what
    if key not in _beside:
        engine, ranks, name, timeout_ms = _restarts[group.id][1]
        number = _FIRST_BESIDE + len(_beside)
        connect(number, engine, ranks, f"{name}, {what}", timeout_ms)
        _beside[key] = _groups[number] = Group(group.rank, number, ranks, name=f"{group.name}, {what}")
    return _beside[key]


class Group:
    """Processes that talk to each other.

    Args:
        rank_in_group: the number of this process in the group; -1 if it is no member.
        id: the number of the group.
        ranks: the numbers of its processes.
        pg: accepted for compatibility.
        name: the name of the group.

    Examples:
        >>> import oar
        >>> group = oar.distributed.new_group([0])
        >>> group.rank, group.nranks, group.ranks
        (0, 1, [0])
    """

    def __init__(self, rank_in_group: int, id: int, ranks: list[int], pg: Any = None, name: str | None = None) -> None:
        self._rank_in_group = rank_in_group
        self._id = id
        self._ranks = list(ranks)
        self._name = name

    @property
    def rank(self) -> int:
        """The number of this process in the group; -1 if it is no member."""
        return self._rank_in_group

    @property
    def ranks(self) -> list[int]:
        """The numbers of the processes of the group."""
        return self._ranks

    @property
    def nranks(self) -> int:
        """How many processes the group has."""
        return len(self._ranks)

    @property
    def world_size(self) -> int:
        """How many processes the group has; -1 if this one is no member."""
        return len(self._ranks) if self._rank_in_group >= 0 else -1

    @property
    def name(self) -> str | None:
        """The name of the group."""
        return self._name

    @property
    def id(self) -> int:
        """The number of the group."""
        return self._id

    @property
    def backend(self) -> str:
        """The library that the processes talk through; ``'UNDEFINED'`` in a group of one."""
        return _connected.get(self._id, "undefined").upper()

    @property
    def process_group(self) -> None:
        """None: Paddle has an object of its own here, which only its own code uses."""
        return None

    def is_member(self) -> bool:
        """Whether this process has to talk to others of the group: never if there is only one."""
        return self.rank >= 0 and self.nranks >= 2

    def get_group_rank(self, rank: int) -> int:
        """The number in this group of the process with the number ``rank``; -1 if it is no member."""
        return self._ranks.index(rank) if rank in self._ranks else -1

    def __repr__(self) -> str:
        ranks = ", ".join(map(str, self.ranks))
        return f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: {ranks}; name: {self.name}"


def check_alone(function: str, group: Group | None = None) -> None:
    """Raises an error if ``function`` would have to work together with other processes, which it does not do yet."""
    count = get_world_size() if group is None else group.nranks
    if count > 1:
        raise NotImplementedError(f"[{function}] the group has {count} processes, and Oar does this for one process only. "
                                  "hint: start one, without a launcher, or use DataParallel and the collectives.")


def is_member(group: Group | None) -> bool:
    """Whether this process belongs to a group; warns if not, since the call does nothing then."""
    if group is None or group.rank >= 0:
        return True
    warnings.warn(f"process {get_rank()} is not in group {group.name}: nothing is done", stacklevel=3)
    return False


def _get_global_group() -> Group:
    """The group of all processes, by the name that Paddle's scripts use."""
    group = get_group(0)
    assert group is not None
    return group


def new_group(
    ranks: list[int] | None = None, backend: str | None = None, timeout: Any = None, nccl_comm_init_option: int = 0,
    nccl_config: Any = None,
) -> Group:  # fmt: skip
    """A group of processes. All processes call this, in the same order, those too that are no members.

    Args:
        ranks: the numbers of the processes; None means all.
        backend: the engine: ``'gloo'`` or ``'mpi'``; None takes that of ``init_parallel_env``.
        timeout: how long a call waits, a ``timedelta``; None takes that of ``init_parallel_env``.
        nccl_comm_init_option: accepted for compatibility.
        nccl_config: accepted for compatibility.

    Returns:
        a group.

    Examples:
        >>> import oar
        >>> oar.distributed.new_group([0]).nranks
        1
    """
    members = list(range(get_world_size())) if ranks is None else sorted(ranks)
    wrong = [rank for rank in members if not 0 <= rank < get_world_size()]
    if wrong:
        raise ValueError(f"[new_group] ranks {members} has {wrong}, but there {_are_processes()}. "
                         "hint: pass numbers of processes that exist, or None for all.")
    if len(set(members)) != len(members):
        raise ValueError(f"[new_group] ranks {members} names a process twice.")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"[new_group] timeout must be a datetime.timedelta, not {type(timeout).__name__}.")
    if get_world_size() > 1 and not job.started:
        raise RuntimeError("[new_group] the processes are not connected. hint: call init_parallel_env() first.")
    number = next(_numbers)
    group = Group(members.index(get_rank()) if get_rank() in members else -1, number, members, name=f"_default_pg{number}")
    if group.rank >= 0 and len(members) > 1:
        wait_ms = ParallelEnv().pg_timeout if timeout is None else int(timeout.total_seconds() * 1000)
        connect(number, (backend or job.backend).lower(), members, f"group{number}", wait_ms)
    _groups[number] = group
    return group


def _are_processes() -> str:
    count = get_world_size()
    return "is one process, with the number 0" if count == 1 else f"are {count} processes"


def get_group(id: int = 0) -> Group | None:
    """The group with a number.

    Args:
        id: the number; 0 is the group of all processes.

    Returns:
        the group, or None if there is no such group.

    Examples:
        >>> import oar
        >>> group = oar.distributed.new_group()
        >>> oar.distributed.get_group(group.id) is group
        True
    """
    if id == 0 and (0 not in _groups or (_groups[0].nranks, _groups[0].rank) != (get_world_size(), get_rank())):  # a fork has another rank
        _groups[0] = Group(get_rank(), 0, list(range(get_world_size())), name="_default_pg")
    if id not in _groups:
        warnings.warn(f"there is no group {id}", stacklevel=2)
    return _groups.get(id)


def destroy_process_group(group: Group | None = None) -> None:
    """Removes a group.

    Args:
        group: the group; None removes all.

    Examples:
        >>> import oar
        >>> oar.distributed.destroy_process_group(oar.distributed.new_group())
    """
    if group is None or group.id == 0:
        leave()
        return
    if group.id not in _groups:
        raise ValueError(f"[destroy_process_group] there is no group {group.id}; it was removed before. "
                         "hint: pass a group of new_group once.")
    if _connected.pop(group.id, None) is not None:
        _C.group_remove(group.id)
    del _groups[group.id]


def shutdown_process_group(group: Group | None = None) -> None:
    """Closes the connections of a group, which stays known. ``restart_process_group`` opens them again.

    Args:
        group: the group; None means all groups.

    Examples:
        >>> import oar
        >>> oar.distributed.shutdown_process_group()
    """
    for number in sorted(_connected, reverse=True) if group is None else [group.id]:
        if _connected.pop(number, None) is not None:
            _C.group_remove(number)


def restart_process_group(group: Group | None = None) -> None:
    """Opens the connections that ``shutdown_process_group`` has closed. All members call it.

    Args:
        group: the group; None means all groups.

    Examples:
        >>> import oar
        >>> oar.distributed.restart_process_group()
    """
    for number in sorted(_restarts) if group is None else [group.id]:
        if number in _connected or number not in _restarts:
            continue
        count, (engine, ranks, name, timeout_ms) = _restarts[number]
        _restarts[number] = (count + 1, (engine, ranks, name, timeout_ms))
        connect(number, engine, ranks, f"{name}/{count + 1}", timeout_ms)


def barrier(group: Group | None = None) -> None:
    """Waits until all processes of a group have come this far: at once if there is one.

    Args:
        group: the group; None means all processes.

    Examples:
        >>> import oar
        >>> oar.distributed.barrier()
    """
    from oar.distributed.communication._calls import Call

    Call("barrier", group).run()


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Waits until a tensor has been sent or received. On the CPU a tensor is ready when the task of its call is: this returns at
    once.

    Args:
        tensor: the tensor.
        group: the group; None means all processes.
        use_calc_stream: accepted for compatibility.

    Examples:
        >>> import oar
        >>> oar.distributed.wait(oar.ones([2]))
    """
