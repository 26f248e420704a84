"""``oar.io.dataset`` under Paddle's inner path."""

from oar.io.dataset import (
    ChainDataset, ComposeDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split)

__all__ = ["ComposeDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split", "ChainDataset"]
