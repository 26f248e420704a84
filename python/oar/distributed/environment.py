"""Which process of how many this is, and how it meets the others."""

from __future__ import annotations

import atexit
import os
import socket
from typing import Any

from oar import _C
from oar.distributed import _launched

__all__ = [
    "ParallelEnv",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_available",
    "is_initialized",
]


class _Job:
    """The connection with the other processes."""

    def __init__(self) -> None:
        self.started = False
        self.backend = ""
        self.store: Any = None
        self.server: Any = None


job = _Job()


class ParallelEnv:
    """What a launcher passed to this process in environment variables: Oar's and Paddle's, PyTorch's, mpirun's or Slurm's.

    Examples:
        >>> import oar
        >>> oar.distributed.ParallelEnv().rank
        0
    """

    @property
    def rank(self) -> int:
        """The number of this process."""
        return _launched.place().rank

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return _launched.place().size

    @property
    def device_id(self) -> int:
        """The number of the device of this process."""
        return int(os.environ.get("FLAGS_selected_gpus", "0").split(",")[0])

    @property
    def current_endpoint(self) -> str:
        """Where this process listens."""
        return os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def trainer_endpoints(self) -> list[str]:
        """Where all processes listen."""
        return [e for e in os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",") if e]

    @property
    def nrings(self) -> int:
        """How many rings of communication there are."""
        return int(os.environ.get("FLAGS_nccl_nrings", "1"))

    @property
    def device_type(self) -> str:
        """The kind of device of this process; empty for the CPU."""
        return os.environ.get("PADDLE_XCCL_BACKEND", "")

    @property
    def pg_timeout(self) -> int:
        """How many milliseconds a group of processes waits."""
        return int(os.environ.get("PADDLE_DISTRI_PG_TIMEOUT", "1800000"))

    local_rank, nranks, dev_id = rank, world_size, device_id


def is_available() -> bool:
    """Whether processes can talk to each other: an engine, Gloo or MPI, is installed.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> isinstance(oar.distributed.is_available(), bool)
        True
    """
    return _C.has_engine("gloo") or _C.has_engine("mpi")


def _engine() -> str:
    """The engine that the user asked for, or the usual one."""
    asked = os.environ.get("PADDLE_DISTRI_BACKEND", "auto")
    if asked in ("gloo", "mpi"):
        return asked
    if asked != "auto":
        raise ValueError(f"[init_parallel_env] PADDLE_DISTRI_BACKEND is {asked!r}, and there is no such engine. hint: gloo or mpi.")
    return "mpi" if _launched.started_by_mpi() and not _launched.master() else "gloo"


def _meet(env: ParallelEnv) -> None:
    """Opens the rendezvous. The process 0 serves it, unless the launcher does."""
    address = _launched.master()
    if not address:
        if job.backend == "mpi":
            return  # MPI has a rendezvous of its own
        raise RuntimeError(f"[init_parallel_env] {env.world_size} processes were started, but nothing says where they meet. "
                           "hint: start them with python -m oar.distributed.launch, or set PADDLE_MASTER to host:port.")
    if env.rank == 0 and address.startswith("tcp://") and not os.environ.get("OAR_STORE_SERVED"):
        job.server = _C.store_serve(*_launched.host_and_port(address))
    job.store = _C.store_open(address, env.pg_timeout)
    if address.startswith("file://"):
        _arrive(env, address)


def _arrive(env: ParallelEnv, folder: str) -> None:
    """Notes in the folder that this process is here. What an earlier job has left there would mislead this one."""
    own = f"{socket.gethostname()}:{os.getpid()}".encode()
    if job.store.add_to(f"arrivals/{env.rank}", 1) == 1:
        job.store.set(f"arrived/{env.rank}", own)
    elif job.store.get(f"arrived/{env.rank}", env.pg_timeout) != own:
        raise RuntimeError(f"[init_parallel_env] process {env.rank} has been in {folder} before: the folder is that of another job. "
                           "hint: name a new folder in OAR_STORE, or remove this one.")


def init_parallel_env() -> Any:
    """Connects this process with the others that a launcher has started; a second call changes nothing. A process that was
    started alone is a group of one.

    Returns:
        the group of all processes.

    Examples:
        >>> import oar
        >>> _ = oar.distributed.init_parallel_env()
        >>> oar.distributed.is_initialized()
        True
    """
    from oar.distributed.communication import group

    if not job.started:
        env = ParallelEnv()
        if not 0 <= env.rank < env.world_size:
            raise ValueError(f"[init_parallel_env] this is process {env.rank} of {env.world_size}, which cannot be. "
                             "hint: check what the launcher sets.")
        if env.world_size > 1:
            job.backend = _engine()
            _meet(env)
            group.connect(0, job.backend, list(range(env.world_size)), "world", env.pg_timeout)
            atexit.register(leave)
        job.started = True
    return group.get_group(0)


def leave() -> None:
    """Ends the connection."""
    from oar.distributed.communication import group

    group.disconnect_all()
    job.store = job.server = None
    job.started, job.backend = False, ""


def is_initialized() -> bool:
    """Whether ``init_parallel_env`` was called.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> isinstance(oar.distributed.is_initialized(), bool)
        True
    """
    return job.started


def get_rank(group: Any = None) -> int:
    """The number of this process.

    Args:
        group: the group in which it counts, -1 if it is no member; None means all processes.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.distributed.get_rank()
        0
    """
    return ParallelEnv().rank if group is None else group.rank


def get_world_size(group: Any = None) -> int:
    """The number of processes.

    Args:
        group: the group that is counted, -1 if this process is no member; None means all processes.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.distributed.get_world_size()
        1
    """
    return ParallelEnv().world_size if group is None else group.world_size


def get_backend(group: Any = None) -> str:
    """The library that processes talk through: ``'GLOO'`` or ``'MPI'``, and ``'UNDEFINED'`` if there is one process.

    Args:
        group: the processes; None means all.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> oar.distributed.get_backend()
        'UNDEFINED'
    """
    return job.backend.upper() or "UNDEFINED" if group is None else group.backend
