"""Distances, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import ops

__all__ = ["pairwise_distance"]

pairwise_distance = ops.pairwise_distance
