"""``oar.io.sampler`` under Paddle's inner path."""

from oar.io.sampler import RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = ["Sampler", "SequenceSampler", "SubsetRandomSampler", "WeightedRandomSampler", "RandomSampler"]
