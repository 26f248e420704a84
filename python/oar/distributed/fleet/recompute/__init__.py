"""Trading time for memory: parts of a network that run again for the derivative instead of saving what they compute."""

from oar.distributed.fleet.recompute.recompute import recompute, recompute_sequential
from oar.distributed.fleet.recompute.recompute_hybrid import recompute_hybrid

__all__ = ["recompute", "recompute_hybrid", "recompute_sequential"]
