"""What fleet is built from: roles of processes, their grid, strategies."""

from oar.distributed.fleet.base import distributed_strategy, role_maker, topology, util_factory

__all__ = ["distributed_strategy", "role_maker", "topology", "util_factory"]
