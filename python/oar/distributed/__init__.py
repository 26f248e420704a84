"""Several processes that work on one model."""

from oar.distributed import (  # noqa: F401  paths of Paddle
    auto_parallel, checkpoint, collective, communication, fleet, models, parallel_helper, rpc, utils)  # fmt: skip
from oar.distributed.auto_parallel.api import dtensor_from_fn, reshard, shard_layer, shard_tensor, unshard_dtensor
from oar.distributed.auto_parallel.dist_attr import DistAttr
from oar.distributed.auto_parallel.optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer, shard_scaler
from oar.distributed.auto_parallel.loader import shard_dataloader
from oar.distributed.auto_parallel.local_map import local_map
from oar.distributed.auto_parallel.parallelize import (
    ColWiseParallel,
    PrepareLayerInput,
    PrepareLayerOutput,
    RowWiseParallel,
    SequenceParallelBegin,
    SequenceParallelDisable,
    SequenceParallelEnable,
    SequenceParallelEnd,
    parallelize,
)
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, get_mesh, set_mesh
from oar.distributed.auto_parallel.strategy import ProgramStrategy as Strategy
from oar.distributed.checkpoint import (
    ShardedStateDict, ShardedWeight, build_sharded_state_dict, load_merged_state_dict, load_state_dict, save_state_dict, shard_weight)
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
from oar.distributed.entry_attr import CountFilterEntry, ProbabilityEntry, ShowClickEntry
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
from oar.distributed.fleet.layers.mpu.mp_ops import split
from oar.distributed.communication.group import (
    barrier, destroy_process_group, get_group, new_group, restart_process_group, shutdown_process_group, wait)
from oar.distributed.fleet.dataset import InMemoryDataset, QueueDataset
from oar.distributed.launch.main import launch
from oar.distributed.parallel import DataParallel
from oar.distributed.parallel_with_gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from oar.distributed.placement import Partial, Placement, ReduceType, Replicate, Shard
from oar.distributed.planning import calibrate, load_plan
from oar.distributed.spawn import spawn
from oar.distributed import sharding  # after what it uses

__all__ = [
    "ColWiseParallel",
    "CountFilterEntry",
    "DataParallel",
    "DistAttr",
    "InMemoryDataset",
    "P2POp",
    "ParallelEnv",
    "ParallelMode",
    "Partial",
    "Placement",
    "PrepareLayerInput",
    "PrepareLayerOutput",
    "ProbabilityEntry",
    "ProcessMesh",
    "QueueDataset",
    "ReduceOp",
    "ReduceType",
    "Replicate",
    "RowWiseParallel",
    "SequenceParallelBegin",
    "SequenceParallelDisable",
    "SequenceParallelEnable",
    "SequenceParallelEnd",
    "Shard",
    "ShardedStateDict",
    "ShardedWeight",
    "ShardingStage1",
    "ShardingStage2",
    "ShardingStage3",
    "ShowClickEntry",
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
    "build_sharded_state_dict",
    "checkpoint",
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
    "load_merged_state_dict",
    "load_state_dict",
    "local_map",
    "load_plan",
    "new_group",
    "parallel_helper",
    "parallelize",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reshard",
    "restart_process_group",
    "rpc",
    "save_state_dict",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_mesh",
    "shard_dataloader",
    "shard_layer",
    "shard_optimizer",
    "shard_scaler",
    "shard_tensor",
    "shard_weight",
    "sharding",
    "shutdown_process_group",
    "spawn",
    "split",
    "stream",
    "unshard_dtensor",
    "wait",
]
