"""Samplers: the order of samples, and which of them form a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from types import GenericAlias
from typing import Any

import oar
from oar._C import ArgumentValueError
from oar._lazy import np
from oar.io.dataset import IterableDataset

__all__ = [
    "BatchSampler",
    "DistributedBatchSampler",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler:
    """Base class: an iterable of sample numbers.

    Args:
        data_source: the dataset.

    Examples:
        >>> import oar
        >>> class Even(oar.io.Sampler):
        ...     def __iter__(self):
        ...         return iter(range(0, len(self.data_source), 2))
        ...     def __len__(self):
        ...         return (len(self.data_source) + 1) // 2
        ...
        >>> list(Even([5, 6, 7, 8]))
        [0, 2]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source: Any = data_source

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)  # `Sampler[int]`, for annotations and base classes

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__().")


class SequenceSampler(Sampler):
    """0, 1, 2, …

    Args:
        data_source: the dataset.

    Examples:
        >>> import oar
        >>> list(oar.io.SequenceSampler([5, 6, 7]))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        super().__init__(data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All samples in random order, or ``num_samples`` drawn with replacement. Follows ``numpy.random.seed``.

    Args:
        data_source: the dataset.
        replacement: a sample may be drawn more than once.
        num_samples: how many are drawn; all when None.
        generator: an iterator that gives the numbers instead.

    Examples:
        >>> import oar
        >>> sorted(oar.io.RandomSampler([5, 6, 7]))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Iterator[int] | None = None,
    ) -> None:
        super().__init__(data_source)
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a bool, but received {replacement!r}.")
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(f"num_samples should be a positive integer, but received {num_samples!r}.")
        if num_samples is not None and not replacement and num_samples > len(data_source):
            raise ValueError(
                f"{num_samples} samples cannot be drawn from {len(data_source)} without replacement; "
                "pass replacement=True."
            )
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many samples come in one pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        if self.generator is not None:
            for _ in range(self.num_samples):
                try:
                    yield next(self.generator)
                except StopIteration:
                    return
            return
        total = len(self.data_source)
        if self.replacement:
            yield from np.random.choice(total, self.num_samples, replace=True).tolist()
        else:
            yield from np.random.permutation(total)[: self.num_samples].tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given numbers in random order. Follows ``oar.seed``.

    Args:
        indices: the numbers of the samples to take.

    Examples:
        >>> import oar
        >>> sorted(oar.io.SubsetRandomSampler([2, 5, 9]))
        [2, 5, 9]
    """

    def __init__(self, indices: Sequence[int]) -> None:
        if len(indices) == 0:
            raise ValueError("The indices of a SubsetRandomSampler should not be empty.")
        super().__init__()
        self.indices = indices

    def __iter__(self) -> Iterator[int]:
        for position in oar.randperm(len(self.indices)).numpy().tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Numbers drawn with probabilities in proportion to ``weights``.

    Args:
        weights: a weight per sample; with two axes each row is drawn from in turn.
        num_samples: how many to draw.
        replacement: whether a sample may be drawn again.

    Examples:
        >>> import oar
        >>> list(oar.io.WeightedRandomSampler([0.0, 1.0], num_samples=3))
        [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer, but received {num_samples!r}.")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a bool, but received {replacement!r}.")
        weights = weights.numpy() if hasattr(weights, "numpy") else np.asarray(weights)
        if weights.ndim not in (1, 2):
            raise ValueError(f"[WeightedRandomSampler] weights have shape {list(weights.shape)}; one or two axes were expected.")
        super().__init__()
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement

    def __iter__(self) -> Iterator[int]:
        drawn: list[int] = []
        for weights in np.atleast_2d(self.weights):
            self._check(weights)
            shares = weights / weights.sum()
            drawn += np.random.choice(len(shares), self.num_samples, self.replacement, shares).tolist()
        return iter(drawn)

    def _check(self, weights: np.ndarray) -> None:
        """The weights may change until a pass starts, so they are checked then."""
        if (weights < 0).any() or not weights.sum() > 0:
            raise ArgumentValueError("[WeightedRandomSampler] weights should not be negative, and their sum should be positive.")
        if not self.replacement and self.num_samples > int((weights > 0).sum()):
            raise ArgumentValueError(
                f"[WeightedRandomSampler] {self.num_samples} samples cannot be drawn without replacement from "
                f"{int((weights > 0).sum())} with a positive weight. Pass replacement=True, or fewer num_samples."
            )

    def __len__(self) -> int:
        return self.num_samples


def _check_batching(batch_size: Any, shuffle: Any, drop_last: Any) -> None:
    if not isinstance(batch_size, int) or batch_size <= 0:
        raise AssertionError(f"batch_size should be a positive integer, but received {batch_size!r}.")
    for name, value in (("shuffle", shuffle), ("drop_last", drop_last)):
        if not isinstance(value, bool):
            raise AssertionError(f"{name} should be a bool, but received {value!r}.")


def _batches(numbers: Any, size: int, drop_last: bool) -> Iterator[list[int]]:
    batch: list[int] = []
    for number in numbers:
        batch.append(number)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


class BatchSampler(Sampler):
    """Sample numbers in batches.

    Args:
        dataset: the dataset, or None with ``sampler``.
        sampler: gives the numbers; then ``dataset`` must be None and ``shuffle`` False.
        shuffle: random order.
        batch_size: numbers in a batch.
        drop_last: leave out a last batch that is not full.

    Examples:
        >>> import oar
        >>> list(oar.io.BatchSampler(oar.io.TensorDataset([oar.arange(5)]), batch_size=2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any = None,
        sampler: Any = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (sampler is None):
            raise AssertionError("A BatchSampler needs either dataset or sampler.")
        if isinstance(dataset, IterableDataset):
            raise AssertionError("A BatchSampler cannot number the samples of an IterableDataset.")
        _check_batching(batch_size, shuffle, drop_last)
        if sampler is not None and shuffle:
            raise AssertionError("shuffle should be False when sampler is given.")
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        self.sampler = sampler
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return _batches(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        total = len(self.sampler)
        return total // self.batch_size if self.drop_last else math.ceil(total / self.batch_size)


class DistributedBatchSampler(BatchSampler):
    """The part of the batches that belongs to one process of several.

    Every process gets the same number of samples; some are repeated for that. With ``shuffle`` the
    order is the same in all processes and another in each epoch.

    Args:
        dataset: the dataset.
        batch_size: samples in a batch of one process.
        num_replicas: the number of processes; from the environment when None.
        rank: the number of this process; from the environment when None.
        shuffle: random order.
        drop_last: leave out a last batch that is not full.

    Examples:
        >>> import oar
        >>> data = oar.io.TensorDataset([oar.arange(8)])
        >>> list(oar.io.DistributedBatchSampler(data, batch_size=2, num_replicas=2, rank=1))
        [[2, 3], [6, 7]]
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        _check_batching(batch_size, shuffle, drop_last)
        if num_replicas is not None and (not isinstance(num_replicas, int) or num_replicas <= 0):
            raise AssertionError(f"num_replicas should be a positive integer, but received {num_replicas!r}.")
        if rank is not None and (not isinstance(rank, int) or rank < 0):
            raise AssertionError(f"rank should be a non-negative integer, but received {rank!r}.")
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        from oar.distributed._launched import place

        self.nranks = num_replicas or place().size
        self.local_rank = place().rank if rank is None else rank
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)
        self.total_size = self.num_samples * self.nranks

    def __iter__(self) -> Iterator[list[int]]:
        numbers = np.resize(np.arange(len(self.dataset)), self.total_size)
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(numbers)
            self.epoch += 1
        return _batches(self._own_part(numbers).tolist(), self.batch_size, self.drop_last)

    def _own_part(self, numbers: np.ndarray) -> np.ndarray:
        """Of each full round of batches the one of this rank, and its share of what is left."""
        round_size = self.batch_size * self.nranks
        rest = len(numbers) % round_size
        full, left = numbers[: len(numbers) - rest], numbers[len(numbers) - rest :]
        own = full.reshape(-1, self.nranks, self.batch_size)[:, self.local_rank].ravel()
        share = rest // self.nranks
        return np.concatenate([own, left[self.local_rank * share : (self.local_rank + 1) * share]])

    def __len__(self) -> int:
        if self.drop_last:
            return self.num_samples // self.batch_size
        return math.ceil(self.num_samples / self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order when shuffling."""
        self.epoch = epoch
