"""Makes batches of a dataset, in a worker or here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.io._slots import Arena
from oar.io.collate import UnevenBatchError, collated, default_collate_fn, stacked_array, stacked_tensor
from oar.io.dataset import IterableDataset, Subset, TensorDataset

__all__ = ["DataEnded", "Fetcher"]

_NOTHING = object()


class DataEnded(Exception):
    """An iterable dataset has no more samples."""


class Fetcher:
    """Makes batches of a dataset: by sample numbers, or one after the other when iterable."""

    def __init__(self, dataset: Any, collate: Callable, batch_size: int | None, drop_last: bool) -> None:
        self.dataset = dataset
        self.collate = collate
        self.batch_size = batch_size
        self.drop_last = drop_last
        self._stream: Any = None

    def restart(self) -> None:
        """Begin a pass over an iterable dataset."""
        if isinstance(self.dataset, IterableDataset):
            self._stream = iter(self.dataset)

    def fetch(self, indices: Any, arena: Arena | None = None, in_parent: bool = False) -> Any:
        """The next batch. ``DataEnded`` when an iterable dataset has no more.

        Args:
            indices: the numbers of the samples, or that of a single one.
            arena: where arrays go, if there is one.
            in_parent: whether this is the user's process, where stacked arrays may become tensors at once.
        """
        if self._stream is not None:
            return self._next(arena, in_parent)
        if not isinstance(indices, list):
            return self.collate(self.dataset[indices])
        if self.collate is default_collate_fn:
            rows = _rows(self.dataset, indices, arena)
            if rows is not None:
                return rows
        return self._together([self.dataset[index] for index in indices], indices, arena, in_parent)

    def _next(self, arena: Arena | None, in_parent: bool) -> Any:
        if self.batch_size is None:
            sample = next(self._stream, _NOTHING)
            if sample is _NOTHING:
                raise DataEnded
            return self.collate(sample)
        samples = list(islice(self._stream, self.batch_size))
        if not samples or (self.drop_last and len(samples) < self.batch_size):
            raise DataEnded
        return self._together(samples, None, arena, in_parent)

    def _together(self, samples: list[Any], indices: list[Any] | None, arena: Arena | None, in_parent: bool) -> Any:
        if self.collate is not default_collate_fn:
            return self.collate(samples)
        empty = np.empty if arena is None else arena.empty
        try:
            return collated(samples, stacked_tensor if in_parent else lambda field, at: stacked_array(field, at, empty))
        except UnevenBatchError as error:
            raise error.told(indices) from None


def _rows(dataset: Any, indices: list[Any], arena: Arena | None) -> list[Any] | None:
    """The batch of a ``TensorDataset``, gathered field by field; None where samples have to be asked for one by one."""
    while type(dataset) is Subset:
        try:
            indices = [dataset.indices[index] for index in indices]
        except (IndexError, TypeError):
            return None
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not all(isinstance(t, (Tensor, np.ndarray)) for t in dataset.tensors):
        return None
    wanted = np.asarray(indices)
    length = len(dataset)
    if wanted.dtype.kind not in "iu" or wanted.ndim != 1 or wanted.min() < -length or wanted.max() >= length:
        return None
    wanted = np.where(wanted < 0, wanted + length, wanted)
    return [_gathered(tensor, wanted, arena) for tensor in dataset.tensors]


def _gathered(tensor: Any, wanted: np.ndarray, arena: Arena | None) -> Any:
    source = np.asarray(tensor)
    shape = (len(wanted), *source.shape[1:])
    out = np.empty(shape, source.dtype) if arena is None else arena.empty(shape, source.dtype)
    np.take(source, wanted, axis=0, out=out, mode="clip")  # in any other mode NumPy fills a buffer first
    return out if arena is not None or not isinstance(tensor, Tensor) else _C.adopt_array(out)
