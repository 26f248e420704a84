"""The worker processes of a ``DataLoader``: they fetch samples and build batches of arrays."""

from __future__ import annotations

import os
import pickle
import random
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from oar._lazy import np
from oar.io._transport import Slot, encode
from oar.io.collate import arrays_from
from oar.io.dataset import IterableDataset

__all__ = ["DataEnded", "Fetcher", "WorkerError", "WorkerInfo", "get_worker_info", "worker_main"]

_PARENT_CHECK_SECONDS = 2.0


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, the dataset, its seed."""

    id: int
    num_workers: int
    dataset: Any
    seed: int


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a ``DataLoader``: who it is. Elsewhere None.

    Examples:
        >>> import oar
        >>> oar.io.get_worker_info() is None  # the process of the program itself
        True
    """
    return _info


class _Text(str):
    """Text that prints its line breaks even inside a KeyError."""

    def __repr__(self) -> str:
        return str(self)


class WorkerError:
    """An exception on its way from a worker to the parent."""

    def __init__(self, error: BaseException, worker: int) -> None:
        self.worker = worker
        self.trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.kind: type | None = type(error)
        try:
            pickle.dumps(self.kind)
        except Exception:
            self.kind = None

    def reraise(self) -> None:
        """Raise it here, with the worker's traceback in the message."""
        text = f"DataLoader worker {self.worker} raised an error. Its traceback:\n\n{self.trace}"
        if self.kind is KeyError:
            text = _Text(text)
        try:
            error = RuntimeError(text) if self.kind is None else self.kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error


class DataEnded(Exception):
    """An iterable dataset has no more samples."""


_NOTHING = object()


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

    def fetch(self, indices: Any) -> Any:
        """The next batch. ``DataEnded`` when an iterable dataset has no more."""
        if self._stream is None:
            if isinstance(indices, list):
                return self.collate([self.dataset[index] for index in indices])
            return self.collate(self.dataset[indices])
        if self.batch_size is None:
            sample = next(self._stream, _NOTHING)
            if sample is _NOTHING:
                raise DataEnded
            return self.collate(sample)
        samples = list(islice(self._stream, self.batch_size))
        if not samples or (self.drop_last and len(samples) < self.batch_size):
            raise DataEnded
        return self.collate(samples)


def _wait_for_job(pipe: Any, parent: int) -> Any:
    """The next job, or None if there are no more: the worker was stopped, or the parent has ended."""
    try:
        while not pipe.poll(_PARENT_CHECK_SECONDS):
            if os.getppid() != parent:
                return None
        return pipe.recv()
    except (EOFError, OSError):
        return None


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)


def worker_main(
    number: int,
    count: int,
    pipe: Any,
    foreign_pipes: list[Any],
    slots: list[Slot],
    fetcher: Fetcher,
    init: Callable[[int], None] | None,
    base_seed: int,
    parent: int,
) -> None:
    """The loop of a worker until it is stopped."""
    global _info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent decides what Ctrl-C means.
    for other in foreign_pipes:
        other.close()
    seed = int(np.random.SeedSequence([base_seed, number]).generate_state(1)[0])
    _seed(seed)
    _info = WorkerInfo(number, count, fetcher.dataset, seed)
    failure: WorkerError | None = None
    try:
        if init is not None:
            init(number)
    except BaseException as error:
        failure = WorkerError(error, number)
    epoch = -1
    while (job := _wait_for_job(pipe, parent)) is not None:
        job_epoch, order, indices, slot = job
        result: Any
        try:
            if failure is None and job_epoch != epoch:
                epoch = job_epoch
                fetcher.restart()
            if failure is not None:
                result = failure
            else:
                batch = arrays_from(fetcher.fetch(indices))
                result = encode(batch, slots[slot] if slots else None)
        except DataEnded:
            result = None
        except BaseException as error:
            result = WorkerError(error, number)
        try:
            pipe.send((job_epoch, order, slot, result))
        except (BrokenPipeError, OSError):
            break
    pipe.close()
