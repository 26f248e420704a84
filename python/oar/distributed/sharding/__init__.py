"""Training whose states, gradients and parameters are divided over the processes that train copies of a network (ZeRO)."""

from oar.distributed.sharding.group_sharded import group_sharded_parallel, save_group_sharded_model

__all__ = ["group_sharded_parallel", "save_group_sharded_model"]
