"""Several processes that work on one model."""

from oar.distributed import auto_parallel, collective, communication, fleet, parallel_helper
from oar.distributed.auto_parallel.api import dtensor_from_fn, reshard, shard_layer, shard_tensor, unshard_dtensor
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.distributed.auto_parallel.optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, get_mesh, set_mesh
from oar.distributed.auto_parallel.strategy import ProgramStrategy as Strategy
from oar.distributed.communication import (
    P2POp,
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    alltoall,
    alltoall_single,
    batch_isend_irecv,
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
from oar.distributed.communication.group import (
    barrier, destroy_process_group, get_group, new_group, restart_process_group, shutdown_process_group, wait)
from oar.distributed.launch.main import launch
from oar.distributed.parallel import DataParallel
from oar.distributed.parallel_with_gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from oar.distributed.placement import Partial, Placement, ReduceType, Replicate, Shard
from oar.distributed.planning import calibrate, load_plan
from oar.distributed.spawn import spawn

__all__ = [
    "DataParallel",
    "DistAttr",
    "P2POp",
    "ParallelEnv",
    "ParallelMode",
    "Partial",
    "Placement",
    "ProcessMesh",
    "ReduceOp",
    "ReduceType",
    "Replicate",
    "Shard",
    "ShardingStage1",
    "ShardingStage2",
    "ShardingStage3",
    "Strategy",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "auto_parallel",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "calibrate",
    "collective",
    "communication",
    "destroy_process_group",
    "dtensor_from_fn",
    "fleet",
    "gather",
    "get_backend",
    "get_group",
    "get_mesh",
    "get_rank",
    "get_world_size",
    "gloo_barrier",
    "gloo_init_parallel_env",
    "gloo_release",
    "init_parallel_env",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "launch",
    "load_plan",
    "new_group",
    "parallel_helper",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reshard",
    "restart_process_group",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_mesh",
    "shard_layer",
    "shard_optimizer",
    "shard_tensor",
    "shutdown_process_group",
    "spawn",
    "stream",
    "unshard_dtensor",
    "wait",
]
