"""Groups and messages by the paths that Paddle's scripts use."""

from oar.distributed.communication import ReduceOp, all_gather, all_reduce, broadcast, reduce, scatter, stream
from oar.distributed.communication.group import Group, _get_global_group, barrier, get_group, new_group, wait  # noqa: F401
from oar.distributed.environment import is_available
from oar.distributed.fleet.layers.mpu.mp_ops import (  # noqa: F401
    _c_concat, _c_identity, _c_split, _mp_allreduce)

__all__ = [
    "Group",
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "get_group",
    "is_available",
    "new_group",
    "reduce",
    "scatter",
    "stream",
    "wait",
]
