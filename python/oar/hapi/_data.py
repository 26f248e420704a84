"""The batches of what a model is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["batch_sizes", "check_count", "length_of", "loader_of", "steps_of"]


def batch_sizes(batch_size: Any) -> Sequence[int]:
    if isinstance(batch_size, (list, tuple)):
        if len(batch_size) != 2:
            raise AssertionError(f"[Model.fit] batch_size should be a number, or one for training and one for evaluation, not "
                                 f"{batch_size}.")
        return batch_size
    return (batch_size, batch_size)


def check_count(method: str, num_iters: int) -> None:
    if num_iters <= 0:
        raise AssertionError(f"[Model.{method}] num_iters must be greater than 0, not {num_iters}.")


def loader_of(method: str, data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
    """What iterates over the batches of data."""
    io = oar.io
    if isinstance(data, io.IterableDataset):
        return io.DataLoader(data, batch_size=batch_size, drop_last=drop_last, num_workers=num_workers)
    if isinstance(data, io.Dataset):
        sampler = io.DistributedBatchSampler(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last)
        return io.DataLoader(data, batch_sampler=sampler, num_workers=num_workers)
    if not hasattr(data, "__iter__") or isinstance(data, Tensor):
        raise TypeError(f"[Model.{method}] data should be a Dataset, a DataLoader or an iterable of batches, but received "
                        f"{type(data).__name__}. oar.io.TensorDataset([x, y]) makes a Dataset of tensors.")
    return data


def length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, ValueError, RuntimeError):  # it has none, or does not know it
        return None


def steps_of(loader: Any, look_ahead: bool) -> Iterator[tuple[int, list[Any], bool]]:
    """Number and tensors of each batch, and whether it is the last one: without a length only ``look_ahead`` tells."""
    length = length_of(loader)
    batches = iter(loader)
    if length is not None or not look_ahead:
        for step, data in enumerate(batches):
            yield step, _flat(data), step + 1 == length
        return
    end = object()
    step, data = 0, next(batches, end)
    while data is not end:
        after = next(batches, end)
        yield step, _flat(data), after is end
        step, data = step + 1, after


def _flat(data: Any) -> list[Any]:
    """The tensors of a batch, nested or not."""
    if isinstance(data, (list, tuple)) and not any(isinstance(item, (list, tuple, dict)) for item in data):
        return list(data)
    from oar.utils.layers_utils import flatten

    return list(flatten(data))
