"""Datasets of files with one sample in a line, read through a pipe."""

from oar.distributed.fleet.dataset.dataset import DatasetBase, InMemoryDataset, QueueDataset

__all__ = ["DatasetBase", "InMemoryDataset", "QueueDataset"]
