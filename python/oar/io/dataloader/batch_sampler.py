"""``oar.io.sampler`` under Paddle's inner path."""

from oar.io.sampler import BatchSampler, DistributedBatchSampler

__all__ = ["DistributedBatchSampler", "BatchSampler"]
