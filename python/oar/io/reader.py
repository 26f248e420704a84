"""``DataLoader``: batches of tensors from a dataset, fetched here or by worker processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from oar import _C
from oar._C import Tensor
from oar._framework import in_dynamic_mode
from oar._lazy import np
from oar._places import device_name, unavailable
from oar.io._fetcher import DataEnded, Fetcher
from oar.io._position import Position
from oar.io._transport import mapped
from oar.io.collate import default_collate_fn, default_convert_fn, tensors_from
from oar.io.dataset import Dataset, IterableDataset
from oar.io.sampler import BatchSampler, RandomSampler, SequenceSampler

if TYPE_CHECKING:
    from oar.io._pool import WorkerPool

__all__ = ["DataLoader"]

_observe: Callable[[Any, Any], Any] | None = None  # fetches a batch in place of `next`, while a profiler measures loading


class BatchIterator:
    """One pass over a loader."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._batch_sampler = loader.batch_sampler
        self._batches = loader._position.counted(loader._batches)

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> Any:
        return next(self._batches) if _observe is None else _observe(self._batches, self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def close(self) -> None:
        """Ends the pass; its workers stop."""
        self._batches.close()


class DataLoader:
    """Iterates over a dataset in batches of tensors.

    Args:
        dataset: a ``Dataset`` or an ``IterableDataset``.
        feed_list: while a static program is written, the variables that a batch is fed to, in the order of its fields.
        places: where batches go; None is the current device. With several, while a static program is written, each step of
            the loop gives a list of as many batches.
        return_list: False gives ``[{name: tensor}]``, by the names of ``feed_list``, to be fed to an executor. Outside of
            static programs batches are lists either way.
        batch_sampler: gives the sample numbers of each batch; then ``batch_size``, ``shuffle`` and
            ``drop_last`` are left at their defaults.
        batch_size: the number of samples in a batch; None returns single samples.
        shuffle: random order.
        drop_last: leave out a last batch that is not full.
        collate_fn: builds a batch of arrays from a list of samples; ``default_collate_fn`` when None.
        num_workers: processes that fetch ahead; 0: fetch here, when asked.
        use_buffer_reader: accepted for compatibility; workers always fetch ahead.
        reader_buffer_size: accepted for compatibility; ``prefetch_factor`` says how far workers are ahead.
        prefetch_factor: batches that each worker fetches ahead.
        use_shared_memory: batches come through shared memory rather than a pipe. It is anonymous: ``/dev/shm`` may be small.
        timeout: seconds to wait for a batch from a worker; 0: forever.
        worker_init_fn: called in each worker with its number.
        persistent_workers: keep the workers from one pass to the next.

    The order of batches depends on NumPy's random numbers only, not on ``num_workers``. Each worker has random numbers of its
    own, derived from those. Workers are forked, unless ``multiprocessing.set_start_method`` says otherwise.

    Examples:
        >>> import oar
        >>> data = oar.io.TensorDataset([oar.arange(10).reshape([10, 1]), oar.arange(10)])
        >>> loader = oar.io.DataLoader(data, batch_size=4, drop_last=True)
        >>> [labels.tolist() for rows, labels in loader]
        [[0, 1, 2, 3], [4, 5, 6, 7]]
    """

    def __init__(
        self,
        dataset: Dataset,
        feed_list: Any = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        _check_numbers(num_workers, prefetch_factor, timeout)
        if not isinstance(dataset, IterableDataset) and not hasattr(dataset, "__getitem__"):
            raise TypeError(f"dataset should be a Dataset, with __getitem__ and __len__, or an IterableDataset, not "
                            f"{type(dataset).__name__}.")
        if not return_list and feed_list is None and not in_dynamic_mode():
            raise AssertionError("[DataLoader] return_list=False needs feed_list, the variables that batches are fed to.")
        self.dataset = dataset
        self.feed_list = feed_list
        self.places = _checked_places(places)
        self.return_list = return_list
        self.num_workers = num_workers
        self.use_buffer_reader = use_buffer_reader
        self.reader_buffer_size = reader_buffer_size
        self.prefetch_factor = prefetch_factor
        self.use_shared_memory = use_shared_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.persistent_workers = persistent_workers
        self.drop_last = drop_last
        self._iterable = isinstance(dataset, IterableDataset)
        self._pool: WorkerPool | None = None
        self.batch_sampler = self._choose_sampler(batch_sampler, batch_size, shuffle, drop_last)
        self.batch_size = batch_size if batch_sampler is None else getattr(batch_sampler, "batch_size", None)
        batched = self.batch_sampler is not None or (self._iterable and batch_size is not None)
        self.auto_collate_batch = batched
        self.collate_fn = collate_fn
        self._position = Position(self)

    def state_dict(self) -> dict[str, Any]:
        """Where the pass over the data is: what ``load_state_dict`` needs to go on with the batch that comes next.

        Batches count when they have been returned. A sampler that draws as it goes should have ``state_dict`` and
        ``load_state_dict`` methods of its own; so may an ``IterableDataset`` that is read without workers, otherwise it is read
        again up to the position.

        Returns:
            a dict of numbers and arrays, for ``oar.save``.

        Examples:
            >>> import oar
            >>> data = oar.io.TensorDataset([oar.arange(6)])
            >>> loader = oar.io.DataLoader(data, batch_size=2)
            >>> first = next(iter(loader))
            >>> again = oar.io.DataLoader(data, batch_size=2)
            >>> again.load_state_dict(loader.state_dict())
            >>> [batch.tolist() for (batch,) in again]
            [[2, 3], [4, 5]]
        """
        return self._position.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass goes on where another loader of the same data was.

        Args:
            state_dict: what its ``state_dict`` returned.
        """
        self._position.load_state_dict(state_dict)

    set_state_dict = load_state_dict

    def _choose_sampler(self, given: Any, batch_size: int | None, shuffle: bool, drop_last: bool) -> Any:
        if self._iterable:
            if shuffle or given is not None:
                what = "shuffle" if shuffle else "batch_sampler"
                raise ValueError(f"An IterableDataset sets its own order: {what} cannot be used with it.")
            return None
        if given is not None:
            if batch_size != 1 or shuffle or drop_last:
                raise AssertionError("batch_size, shuffle and drop_last should not be set together with batch_sampler.")
            return given
        if batch_size is None:
            self._singly = RandomSampler(self.dataset) if shuffle else SequenceSampler(self.dataset)
            return None
        return BatchSampler(self.dataset, shuffle=shuffle, batch_size=batch_size, drop_last=drop_last)

    def __len__(self) -> int:
        if self._iterable:
            raise ValueError("The length of a DataLoader over an IterableDataset is not known.")
        return len(self._singly if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self) -> BatchIterator:
        return BatchIterator(self)

    def __call__(self) -> BatchIterator:
        return iter(self)

    def _jobs(self) -> Iterator[Any]:
        """The content of each batch: sample numbers, or None for "the next ones"."""
        if self._iterable:
            return itertools.repeat(None)
        if self.batch_sampler is None:
            return self._position.remaining(iter(self._singly))
        return self._position.remaining(map(list, self.batch_sampler))

    def _fetcher(self) -> Fetcher:
        collate = self.collate_fn or (default_collate_fn if self.auto_collate_batch else default_convert_fn)
        return Fetcher(self.dataset, collate, self.batch_size, self.drop_last)

    def _batches(self) -> Generator[Any, None, None]:
        """One pass, as the user sees it."""
        batches = self._with_workers() if self.num_workers > 0 else self._here()
        device = _C.get_device() if self.places is None else device_name(self.places[0])
        if device != "cpu":
            batches = (mapped(batch, lambda t: t.to(device) if isinstance(t, Tensor) else t) for batch in batches)
        return batches if in_dynamic_mode() else self._to_feed(batches)

    def _to_feed(self, batches: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """Batches for the executor of a static program: one for each place, by name if that is asked for."""
        if not self.return_list:
            batches = (self._by_name(batch) for batch in batches)
        count = 1 if self.places is None else len(self.places)
        if count == 1 and self.return_list:
            yield from batches
        else:
            while len(group := list(itertools.islice(batches, count))) == count:
                yield group

    def _by_name(self, batch: Any) -> dict[str, Any]:
        fields: list[Any] = []
        mapped(batch, fields.append)
        names = [variable.name for variable in self.feed_list or []]
        if len(fields) != len(names):
            raise ValueError(
                f"[DataLoader] a batch has {len(fields)} fields, but feed_list has {len(names)} variables: {', '.join(names)}. "
                "Give one variable for each field."
            )
        return dict(zip(names, fields))

    def _here(self) -> Generator[Any, None, None]:
        fetcher = self._fetcher()
        fetcher.restart()
        for job in self._jobs():
            try:
                batch = fetcher.fetch(job, in_parent=True)
            except DataEnded:
                return
            yield tensors_from(batch)

    def _make_pool(self) -> WorkerPool:
        from oar.io._pool import WorkerPool  # Only loaders with workers pay for multiprocessing.
        from oar.io._worker import Plan

        plan = Plan(self._fetcher(), self.num_workers, self.worker_init_fn, _seed_of_pass(self._position.begun))
        return WorkerPool(plan, self.prefetch_factor, self.use_shared_memory, self.timeout)

    def _with_workers(self) -> Generator[Any, None, None]:
        pool = self._pool
        keep = self.persistent_workers and (pool is None or not pool.busy)
        if not keep or pool is None:
            pool = self._make_pool()
        self._pool = pool if keep else self._pool
        healthy = False
        try:
            yield from pool.run(self._jobs())
            healthy = True
        except GeneratorExit:
            healthy = True
            raise
        finally:
            if not (keep and healthy):
                pool.shut_down()
                if keep:
                    self._pool = None


def _seed_of_pass(number: int) -> int:
    """A seed for the workers of a pass. NumPy's random numbers determine it, and are as they were afterwards: the order of
    samples must not depend on the number of workers."""
    copy = np.random.RandomState(0)
    copy.set_state(np.random.get_state())
    return int(np.random.SeedSequence([int(copy.randint(2**31 - 1)), number]).generate_state(1)[0])


def _checked_places(places: Any) -> list[Any] | None:
    if places is None:
        return None
    given = list(places) if isinstance(places, (list, tuple)) else [places]
    known = {name for name, _ in _C.device_types()} | {"cpu"}
    for place in given:
        if device_name(place).partition(":")[0] not in known:
            raise unavailable("DataLoader", device_name(place))
    return given or None


def _check_numbers(num_workers: Any, prefetch_factor: Any, timeout: Any) -> None:
    if not isinstance(num_workers, int) or num_workers < 0:
        raise AssertionError(f"num_workers should be a non-negative integer, but received {num_workers!r}.")
    if not isinstance(prefetch_factor, int) or prefetch_factor <= 0:
        raise AssertionError(f"prefetch_factor should be a positive integer, but received {prefetch_factor!r}.")
    if timeout < 0:
        raise AssertionError(f"timeout should not be negative, but is {timeout}.")


_pinned = [True]


def use_pinned_memory(*args: bool) -> bool | None:
    """Whether batches for a GPU are to be put into memory that it reads faster. Kept; without a GPU it has no effect.

    Args:
        args: the new state; without one the state is returned.
    """
    if not args:
        return _pinned[0]
    _pinned[0] = bool(args[0])
    return None
