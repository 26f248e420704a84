"""Batches of a reader's samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["batch"]


def batch(reader: Callable[[], Iterator[Any]], batch_size: int, drop_last: bool = False) -> Callable[[], Iterator[list[Any]]]:
    """A reader of lists of samples.

    Args:
        reader: a function without arguments that returns an iterator over samples.
        batch_size: the number of samples in a list.
        drop_last: whether a last list that is shorter is left out.

    Returns:
        a reader.

    Examples:
        >>> import oar
        >>> list(oar.batch(lambda: iter(range(5)), 2)())
        [[0, 1], [2, 3], [4]]
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"[batch] batch_size must be a positive integer, not {batch_size!r}.")

    def read() -> Iterator[list[Any]]:
        samples = iter(reader())
        while part := list(itertools.islice(samples, batch_size)):
            if len(part) == batch_size or not drop_last:
                yield part

    return read
