"""Tensors and layers that are laid out over a grid of processes, and settings for parallel execution."""

from oar.distributed.auto_parallel.api import annotate as shard_tensor
from oar.distributed.auto_parallel.process_mesh import ProcessMesh, create_mesh, get_mesh, set_mesh
from oar.distributed.auto_parallel.strategy import Strategy

__all__ = ["ProcessMesh", "Strategy", "create_mesh", "get_mesh", "set_mesh", "shard_tensor"]
