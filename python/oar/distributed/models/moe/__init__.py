"""Which rows go to which expert."""

from oar.distributed.models.moe import utils

__all__ = ["utils"]
