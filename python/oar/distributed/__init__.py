"""Several processes that work on one model. Today there is one: what has a meaning for a single process is here."""

from oar.distributed import communication, fleet
from oar.distributed.communication import (
    all_gather,
    all_gather_object,
    all_reduce,
    alltoall,
    alltoall_single,
    broadcast,
    broadcast_object_list,
    gather,
    irecv,
    isend,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    stream,
)
from oar.distributed.environment import (
    ParallelEnv,
    get_backend,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_available,
    is_initialized,
)
from oar.distributed.fleet.base.topology import ParallelMode
from oar.distributed.group import ReduceOp, barrier, destroy_process_group, get_group, new_group, wait
from oar.distributed.launch.main import launch
from oar.distributed.parallel import DataParallel
from oar.distributed.placement import Partial, Placement, Replicate, Shard
from oar.distributed.spawn import spawn

__all__ = [
    "DataParallel",
    "ParallelEnv",
    "ParallelMode",
    "Partial",
    "Placement",
    "ReduceOp",
    "Replicate",
    "Shard",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "communication",
    "destroy_process_group",
    "fleet",
    "gather",
    "get_backend",
    "get_group",
    "get_rank",
    "get_world_size",
    "init_parallel_env",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "launch",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "spawn",
    "stream",
    "wait",
]
