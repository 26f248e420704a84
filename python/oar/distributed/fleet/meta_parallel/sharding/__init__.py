"""Networks and optimisers whose states, gradients and parameters processes divide."""

from oar.distributed.fleet.meta_parallel.sharding import (
    group_sharded_optimizer_stage2,
    group_sharded_stage2,
    group_sharded_stage3,
    group_sharded_utils,
)

__all__ = ["group_sharded_optimizer_stage2", "group_sharded_stage2", "group_sharded_stage3", "group_sharded_utils"]
