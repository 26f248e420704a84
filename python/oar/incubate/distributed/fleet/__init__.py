"""Recomputation of layers in a sequence, and older names of roles of processes."""

from oar.distributed.fleet.recompute import recompute_hybrid, recompute_sequential
from oar.incubate.distributed.fleet import parameter_server, role_maker

__all__ = ["parameter_server", "recompute_hybrid", "recompute_sequential", "role_maker"]
