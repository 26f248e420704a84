"""Combinations of readers. A reader is a function without arguments that returns an iterator over samples."""

from __future__ import annotations

import itertools
import queue
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers", "multiprocess_reader",
           "shuffle", "xmap_readers"]  # fmt: skip

Reader = Callable[[], Iterator[Any]]
_END = object()


class ComposeNotAligned(ValueError):
    """Readers that are composed have different lengths.

    Examples:
        >>> import oar
        >>> issubclass(oar.reader.ComposeNotAligned, ValueError)
        True
    """


def cache(reader: Reader) -> Reader:
    """Reads all samples once and keeps them in memory.

    Args:
        reader: the reader.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> kept = oar.reader.cache(lambda: iter(range(3)))
        >>> list(kept()), list(kept())
        ([0, 1, 2], [0, 1, 2])
    """
    samples = tuple(reader())
    return lambda: iter(samples)


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """What a function returns for a sample of each reader.

    Args:
        func: the function.
        readers: the readers, one for each of its arguments.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.map_readers(lambda a, b: a + b, lambda: iter([1, 2]), lambda: iter([10, 20]))())
        [11, 22]
    """
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """The samples in random order: as many at a time as the buffer holds.

    Args:
        reader: the reader.
        buf_size: the size of the buffer.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> sorted(oar.reader.shuffle(lambda: iter(range(5)), 3)())
        [0, 1, 2, 3, 4]
    """

    def read() -> Iterator[Any]:
        samples = reader()
        while part := list(itertools.islice(samples, buf_size)):
            random.shuffle(part)
            yield from part

    return read


def chain(*readers: Reader) -> Reader:
    """The samples of one reader after those of another.

    Args:
        readers: the readers.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.chain(lambda: iter([1, 2]), lambda: iter([3]))())
        [1, 2, 3]
    """
    return lambda: itertools.chain(*(reader() for reader in readers))


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """A sample of each reader, as one tuple.

    Args:
        readers: the readers.
        check_alignment: whether readers of different lengths are an error; otherwise the shortest one counts.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.compose(lambda: iter([1, 2]), lambda: iter([(3, 4), (5, 6)]))())
        [(1, 3, 4), (2, 5, 6)]
    """

    def joined(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(itertools.chain(*(part if isinstance(part, tuple) else (part,) for part in parts)))

    def read() -> Iterator[Any]:
        iterators = [reader() for reader in readers]
        if not check_alignment:
            yield from map(joined, zip(*iterators))
            return
        for parts in itertools.zip_longest(*iterators, fillvalue=_END):
            if any(part is _END for part in parts):
                raise ComposeNotAligned("the readers that are composed have different numbers of samples.")
            yield joined(parts)

    return read


def buffered(reader: Reader, size: int) -> Reader:
    """Reads ahead in a thread.

    Args:
        reader: the reader.
        size: how many samples at most.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.buffered(lambda: iter(range(4)), 2)())
        [0, 1, 2, 3]
    """
    return _read_in_threads([reader], size)


def firstn(reader: Reader, n: int) -> Reader:
    """The first samples.

    Args:
        reader: the reader.
        n: how many at most.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.firstn(lambda: iter(range(5)), 2)())
        [0, 1]
    """
    return lambda: itertools.islice(reader(), n)


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """What a function returns for each sample, computed in several threads.

    Args:
        mapper: the function.
        reader: the reader.
        process_num: the number of threads.
        buffer_size: how many results at most are kept.
        order: whether results come in the order of the samples.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.reader.xmap_readers(lambda x: x * x, lambda: iter(range(4)), 2, 4, order=True)())
        [0, 1, 4, 9]
    """

    def read() -> Iterator[Any]:
        from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

        samples, pending = reader(), list[Future]()
        with ThreadPoolExecutor(process_num) as pool:
            for sample in itertools.chain(samples, itertools.repeat(_END)):
                if sample is not _END:
                    pending.append(pool.submit(mapper, sample))
                    if len(pending) < max(buffer_size, 1):
                        continue
                elif not pending:
                    return
                if not order:  # whichever is done comes first
                    done = wait(pending, return_when=FIRST_COMPLETED).done
                    pending.sort(key=lambda one: one not in done)
                yield pending.pop(0).result()

    return read


def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """The samples of several readers, which run at the same time, as they come.

    Args:
        readers: the readers.
        use_pipe: accepted for compatibility: the readers run in threads.
        queue_size: how many samples at most are kept.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> sorted(oar.reader.multiprocess_reader([lambda: iter([1, 2]), lambda: iter([3])])())
        [1, 2, 3]
    """
    if not readers:
        raise ValueError("[multiprocess_reader] there must be at least one reader.")
    return _read_in_threads(readers, queue_size)


def _read_in_threads(readers: Sequence[Reader], size: int) -> Reader:
    def read() -> Iterator[Any]:
        samples: queue.Queue[Any] = queue.Queue(maxsize=max(size, 1))
        stopped = threading.Event()

        def put(item: Any) -> None:
            while not stopped.is_set():
                try:
                    return samples.put(item, timeout=0.1)
                except queue.Full:
                    continue

        def fill(reader: Reader) -> None:
            try:
                for sample in reader():
                    put((True, sample))
                    if stopped.is_set():
                        return
                put((False, None))
            except BaseException as error:  # it is raised where the samples are read
                put((False, error))

        for reader in readers:
            threading.Thread(target=fill, args=(reader,), daemon=True).start()
        running = len(readers)
        try:
            while running:
                is_sample, value = samples.get()
                if is_sample:
                    yield value
                elif value is not None:
                    raise value
                else:
                    running -= 1
        finally:  # whoever stops early leaves no thread behind
            stopped.set()

    return read
