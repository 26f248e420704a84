"""Distances, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import ops
from oar._math import pdist

__all__ = ["pairwise_distance", "pdist"]

pairwise_distance = ops.pairwise_distance
