"""Training in several processes: a grid of them, networks that they divide, and optimisers that join their gradients."""

from oar.distributed import auto_parallel as auto
from oar.distributed.fleet import base, recompute, utils
from oar.distributed.fleet._process import fleet
from oar.distributed.fleet.base.distributed_strategy import DistributedStrategy
from oar.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker
from oar.distributed.fleet.base.topology import CommunicateTopology, HybridCommunicateGroup
from oar.distributed.fleet.base.util_factory import UtilBase
from oar.distributed.fleet.data_generator import MultiSlotDataGenerator, MultiSlotStringDataGenerator
from oar.distributed.fleet.fleet import Fleet
from oar.distributed.fleet.optimizer import distributed_model, distributed_optimizer, distributed_scaler
from oar.distributed.fleet.utils.log_util import check_memory_usage, get_log_level_code, get_log_level_name, set_log_level

init = fleet.init
is_first_worker = fleet.is_first_worker
worker_index = rank = fleet.worker_index
worker_num = nranks = world_size = fleet.worker_num
node_num = fleet.node_num
local_rank = rank_in_node = fleet.local_rank
local_device_ids = fleet.local_device_ids
world_device_ids = fleet.world_device_ids
is_worker = fleet.is_worker
is_coordinator = fleet.is_coordinator
is_server = fleet.is_server
worker_endpoints = fleet.worker_endpoints
server_num = fleet.server_num
server_index = fleet.server_index
server_endpoints = fleet.server_endpoints
util = fleet.util
barrier_worker = fleet.barrier_worker
all_reduce = fleet.all_reduce
init_worker = fleet.init_worker
stop_worker = fleet.stop_worker
init_server = fleet.init_server
run_server = fleet.run_server
save = fleet.save
save_persistables = fleet.save_persistables
load_model = fleet.load_model
shrink = fleet.shrink
minimize = fleet.minimize
get_hybrid_communicate_group = fleet.get_hybrid_communicate_group

from oar.distributed.fleet import layers, meta_parallel  # noqa: E402  they use the functions above

__all__ = [
    "CommunicateTopology",
    "DistributedStrategy",
    "Fleet",
    "HybridCommunicateGroup",
    "MultiSlotDataGenerator",
    "MultiSlotStringDataGenerator",
    "PaddleCloudRoleMaker",
    "Role",
    "UserDefinedRoleMaker",
    "UtilBase",
    "all_reduce",
    "auto",
    "barrier_worker",
    "base",
    "check_memory_usage",
    "distributed_model",
    "distributed_optimizer",
    "distributed_scaler",
    "fleet",
    "get_hybrid_communicate_group",
    "get_log_level_code",
    "get_log_level_name",
    "init",
    "init_server",
    "init_worker",
    "is_coordinator",
    "is_first_worker",
    "is_server",
    "is_worker",
    "layers",
    "load_model",
    "local_device_ids",
    "local_rank",
    "meta_parallel",
    "minimize",
    "node_num",
    "nranks",
    "rank",
    "rank_in_node",
    "recompute",
    "run_server",
    "save",
    "save_persistables",
    "server_endpoints",
    "server_index",
    "server_num",
    "set_log_level",
    "shrink",
    "stop_worker",
    "util",
    "utils",
    "worker_endpoints",
    "worker_index",
    "worker_num",
    "world_device_ids",
    "world_size",
]
