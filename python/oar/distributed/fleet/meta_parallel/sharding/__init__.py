"""Optimisers whose states and gradients processes divide."""

from oar.distributed.fleet.meta_parallel.sharding import group_sharded_optimizer_stage2

__all__ = ["group_sharded_optimizer_stage2"]
