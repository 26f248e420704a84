"""Several processes that work on one model. Today there is one: what has a meaning for a single process is here."""

from oar.distributed import fleet
from oar.distributed.environment import (
    ParallelEnv,
    get_backend,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_available,
    is_initialized,
)
from oar.distributed.placement import Partial, Placement, Replicate, Shard

__all__ = [
    "ParallelEnv",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "fleet",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "is_available",
    "is_initialized",
]
