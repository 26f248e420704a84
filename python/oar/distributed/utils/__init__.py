"""Helpers of training in several processes."""

from oar.distributed.utils import moe_utils
from oar.distributed.utils.moe_utils import global_gather, global_scatter

__all__ = ["global_gather", "global_scatter", "moe_utils"]
