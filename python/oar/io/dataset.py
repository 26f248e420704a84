"""Datasets: things with samples."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any

import oar
from oar._C import Tensor

__all__ = [
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset:
    """A dataset whose samples are numbered: write ``__getitem__`` and ``__len__``.

    Examples:
        >>> import oar
        >>> class Squares(oar.io.Dataset):
        ...     def __getitem__(self, i):
        ...         return i * i
        ...     def __len__(self):
        ...         return 5
        ...
        >>> Squares()[3], len(Squares())
        (9, 5)
    """

    def __init__(self) -> None:
        pass

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)  # `Dataset[int]`, for annotations and base classes

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__().")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__().")


class _NoLengthError(RuntimeError, TypeError):
    """RuntimeError for the user; a TypeError is what ``list()`` takes for "ask me no length"."""


class IterableDataset(Dataset):
    """A dataset whose samples come one after the other: write ``__iter__``.

    Each worker of a ``DataLoader`` iterates over the dataset by itself; ``get_worker_info()`` tells a worker
    which part to take.

    Examples:
        >>> import oar
        >>> class Lines(oar.io.IterableDataset):
        ...     def __iter__(self):
        ...         yield from ('first', 'second')
        ...
        >>> list(Lines())
        ['first', 'second']
    """

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__().")

    def __getitem__(self, idx: int) -> Any:
        raise RuntimeError("An IterableDataset cannot be indexed.")

    def __len__(self) -> int:
        raise _NoLengthError("An IterableDataset has no length.")


class TensorDataset(Dataset):
    """Samples are the rows of tensors: sample ``i`` is ``(tensors[0][i], tensors[1][i], …)``.

    Args:
        tensors: the tensors, equally long.

    Examples:
        >>> import oar
        >>> data = oar.io.TensorDataset([oar.to_tensor([[1.0], [2.0]]), oar.to_tensor([0, 1])])
        >>> row, label = data[1]
        >>> row.tolist(), label.item()
        ([2.0], 1)
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            lengths = [tensor.shape[0] for tensor in tensors]
            raise AssertionError(f"The tensors of a TensorDataset must be equally long, but have {lengths} rows.")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


def _all_numbered(datasets: Iterable[Dataset], what: str) -> list[Dataset]:
    datasets = list(datasets)
    if not datasets:
        raise AssertionError(f"{what} needs one dataset at least.")
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Dataset) or isinstance(dataset, IterableDataset):
            kind = type(dataset).__name__
            raise AssertionError(f"{what} takes datasets whose samples are numbered, but dataset {number} is a {kind}.")
    return datasets


class ComposeDataset(Dataset):
    """Datasets side by side: a sample holds the fields of the samples of all of them.

    Args:
        datasets: the datasets.

    Examples:
        >>> import oar
        >>> x, y = oar.io.TensorDataset([oar.to_tensor([1, 2])]), oar.io.TensorDataset([oar.to_tensor([10, 20])])
        >>> [field.item() for field in oar.io.ComposeDataset([x, y])[1]]
        [2, 20]
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.datasets = _all_numbered(datasets, "ComposeDataset")
        lengths = [len(dataset) for dataset in self.datasets]
        if len(set(lengths)) > 1:
            raise AssertionError(f"The datasets of a ComposeDataset must be equally long, but have {lengths} samples.")

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        sample: list[Any] = []
        for dataset in self.datasets:
            fields = dataset[idx]
            sample.extend(fields if isinstance(fields, (list, tuple)) else [fields])
        return tuple(sample)


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    Args:
        datasets: the datasets.

    Examples:
        >>> import oar
        >>> class Count(oar.io.IterableDataset):
        ...     def __init__(self, n):
        ...         self.n = n
        ...     def __iter__(self):
        ...         return iter(range(self.n))
        ...
        >>> list(oar.io.ChainDataset([Count(2), Count(3)]))
        [0, 1, 0, 1, 2]
    """

    def __init__(self, datasets: Sequence[IterableDataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ChainDataset needs one dataset at least.")
        for number, dataset in enumerate(self.datasets):
            if not isinstance(dataset, IterableDataset):
                raise AssertionError(f"ChainDataset takes IterableDatasets, but dataset {number} is not one.")

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)


class _OutOfRangeError(IndexError, ValueError):
    """IndexError, which ends a loop over the samples; a ValueError is what Paddle raises below the first."""


class ConcatDataset(Dataset):
    """Numbered datasets one after the other.

    Args:
        datasets: the datasets, or lists of samples.

    Examples:
        >>> import oar
        >>> first, second = oar.io.TensorDataset([oar.to_tensor([1, 2])]), oar.io.TensorDataset([oar.to_tensor([3])])
        >>> both = oar.io.ConcatDataset([first, second])
        >>> len(both), both[2][0].item()
        (3, 3)
    """

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each dataset ends."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("[ConcatDataset] datasets is empty; give one dataset at least.")
        for number, dataset in enumerate(self.datasets):
            if isinstance(dataset, IterableDataset):
                raise AssertionError(
                    f"[ConcatDataset] does not support IterableDataset, but dataset {number} is a {type(dataset).__name__}. "
                    "ChainDataset takes these."
                )
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if not -len(self) <= idx < len(self):
            raise _OutOfRangeError(f"[ConcatDataset] index {idx} is out of range for {len(self)} samples.")
        idx %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class Subset(Dataset):
    """Some samples of a dataset.

    Args:
        dataset: the dataset.
        indices: the numbers of the samples to take.

    Examples:
        >>> import oar
        >>> data = oar.io.TensorDataset([oar.to_tensor([10, 20, 30])])
        >>> [row[0].item() for row in oar.io.Subset(data, [2, 0])]
        [30, 10]
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: int) -> Any:
        return self.dataset[self.indices[idx]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Split a dataset at random into pieces that do not overlap.

    Args:
        dataset: the dataset.
        lengths: the length of each piece, or fractions that add up to 1.
        generator: accepted for compatibility; the split follows ``oar.seed``.

    Examples:
        >>> import oar
        >>> data = oar.io.TensorDataset([oar.arange(10)])
        >>> [len(part) for part in oar.io.random_split(data, [7, 3])]
        [7, 3]
    """
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_from_shares(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError(
            f"The lengths {lengths} add up to {sum(lengths)}, but the dataset has {len(dataset)} samples."
        )
    order = oar.randperm(len(dataset)).numpy().tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def _lengths_from_shares(total: int, shares: list[float]) -> list[int]:
    for number, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction {number} should be between 0 and 1, but is {share}.")
    lengths = [math.floor(total * share) for share in shares]
    for number in range(total - sum(lengths)):
        lengths[number % len(lengths)] += 1
    for number, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Piece {number} of random_split is empty.", stacklevel=3)
    return lengths
