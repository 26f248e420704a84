"""Masks and shifts, in the module where Paddle's programs look for them too."""

from __future__ import annotations

from oar._C import ops
from oar.nn.functional.common import sequence_mask
from oar.nn.functional.sampling import gather_tree

__all__ = ["gather_tree", "sequence_mask", "temporal_shift"]

temporal_shift = ops.temporal_shift
