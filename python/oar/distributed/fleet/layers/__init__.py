"""Layers that are cut into pieces for several processes."""

from oar.distributed.fleet.layers import mpu

__all__ = ["mpu"]
