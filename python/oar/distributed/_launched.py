"""What the launcher of this process has said: Paddle's, PyTorch's, OpenMPI's and Slurm's environment variables."""

from __future__ import annotations

import os
from typing import NamedTuple

__all__ = ["Place", "host_and_port", "master", "number", "place", "started_by_mpi"]

# Of each launcher: the number of the process, how many there are, and the number on its machine.
_LAUNCHERS = (
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_LOCAL_RANK"),
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    # Inside a step of srun. A batch script, which is one process, has SLURM_NTASKS too.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
)


class Place(NamedTuple):
    """This process among all, and on its machine."""

    rank: int
    size: int
    local_rank: int


def number(name: str, default: int) -> int:
    """A number in the environment."""
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"[distributed] the environment variable {name} is {text!r}, and not a number.") from None


def place() -> Place:
    """The place that the first launcher has given that said how many processes there are."""
    for rank, size, local in _LAUNCHERS:
        if os.environ.get(size) and os.environ.get(rank):
            return Place(number(rank, 0), number(size, 1), number(local, number(rank, 0)))
    return Place(number("PADDLE_TRAINER_ID", 0), number("PADDLE_TRAINERS_NUM", 1), number("PADDLE_LOCAL_RANK", 0))


def started_by_mpi() -> bool:
    """Whether mpirun started this process, and no other launcher said more."""
    return "OMPI_COMM_WORLD_SIZE" in os.environ and not os.environ.get("PADDLE_TRAINERS_NUM") and not os.environ.get("WORLD_SIZE")


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of an address such as ``tcp://10.0.0.1:29500``."""
    host, _, port = address.split("://")[-1].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"[distributed] {address!r}, where the processes meet, has no port. hint: write it as host:port.")
    return host, int(port)


def _first_slurm_node() -> str:
    """The first machine of Slurm's list: ``n[03-05,9],m1`` begins with n03."""
    head, bracket, rest = os.environ.get("SLURM_STEP_NODELIST", "").partition("[")
    if not bracket:
        return head.split(",")[0]
    if "," in head:
        return head.split(",")[0]
    return head + rest.replace("-", ",").replace("]", ",").split(",")[0]


def master() -> str:
    """Where the processes meet: an address such as ``tcp://10.0.0.1:29500``; empty if nothing says so."""
    env = os.environ
    if env.get("OAR_STORE"):
        return env["OAR_STORE"]
    if env.get("PADDLE_MASTER"):
        return "tcp://" + env["PADDLE_MASTER"].split("://")[-1]
    if env.get("MASTER_ADDR"):
        return f"tcp://{env['MASTER_ADDR']}:{env.get('MASTER_PORT', '29500')}"
    endpoints = env.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
    if endpoints[0]:
        return "tcp://" + endpoints[0]
    if _first_slurm_node():
        return f"tcp://{_first_slurm_node()}:{20000 + number('SLURM_JOB_ID', 0) % 20000}"
    return ""
