"""Checkpoints of several processes: each writes its pieces, and any number of processes reads them."""

from oar.distributed.checkpoint.load_state_dict import load_merged_state_dict, load_state_dict
from oar.distributed.checkpoint.metadata import ShardedCheckpointError
from oar.distributed.checkpoint.save_state_dict import save_state_dict
from oar.distributed.checkpoint.sharded_weight import ShardedStateDict, ShardedWeight, build_sharded_state_dict, shard_weight

__all__ = [
    "ShardedCheckpointError",
    "ShardedStateDict",
    "ShardedWeight",
    "build_sharded_state_dict",
    "load_merged_state_dict",
    "load_state_dict",
    "save_state_dict",
    "shard_weight",
]
