"""What ``DataLoader`` consists of, under Paddle's inner paths."""

from oar.io._worker_info import get_worker_info
from oar.io.collate import default_collate_fn, default_convert_fn
from oar.io.dataset import (
    ChainDataset, ComposeDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split)
from oar.io.reader import DataLoader
from oar.io.sampler import (
    BatchSampler, DistributedBatchSampler, RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler,
    WeightedRandomSampler)

__all__ = [
    "BatchSampler", "ChainDataset", "ComposeDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedBatchSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequenceSampler", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate_fn", "default_convert_fn", "get_worker_info", "random_split",
]  # fmt: skip
