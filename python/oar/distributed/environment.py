"""Which process of how many this is."""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "ParallelEnv",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_available",
    "is_initialized",
]

_started: list[bool] = []


class ParallelEnv:
    """What a launcher passed to this process in environment variables.

    Examples:
        >>> import oar
        >>> oar.distributed.ParallelEnv().rank
        0
    """

    @property
    def rank(self) -> int:
        """The number of this process."""
        return int(os.environ.get("PADDLE_TRAINER_ID", "0"))

    @property
    def world_size(self) -> int:
        """The number of processes."""
        return int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))

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
    """False: processes cannot talk to each other yet.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.distributed.is_available()
        False
    """
    return False


def init_parallel_env() -> Any:
    """Joins the other processes; does nothing if there is only one.

    Examples:
        >>> import oar
        >>> _ = oar.distributed.init_parallel_env()
        >>> oar.distributed.is_initialized()
        True
    """
    env = ParallelEnv()
    if env.world_size > 1:
        raise NotImplementedError(f"[init_parallel_env] {env.world_size} processes were started, and Oar does not "
                                  "connect processes yet. hint: start one, without a launcher.")
    _started.append(True)


def is_initialized() -> bool:
    """Whether ``init_parallel_env`` was called.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> isinstance(oar.distributed.is_initialized(), bool)
        True
    """
    return bool(_started)


def get_rank(group: Any = None) -> int:
    """The number of this process.

    Args:
        group: accepted for compatibility.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.distributed.get_rank()
        0
    """
    return ParallelEnv().rank


def get_world_size(group: Any = None) -> int:
    """The number of processes.

    Args:
        group: accepted for compatibility.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.distributed.get_world_size()
        1
    """
    return ParallelEnv().world_size


def get_backend(group: Any = None) -> str:
    """The library that processes talk through: none.

    Args:
        group: accepted for compatibility.

    Returns:
        a string.

    Examples:
        >>> import oar
        >>> oar.distributed.get_backend()
        'UNDEFINED'
    """
    return "UNDEFINED"
