"""From samples to a batch, and from arrays to tensors."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.io._transport import is_numeric, mapped, native

__all__ = ["UnevenBatchError", "collated", "default_collate_fn", "default_convert_fn", "stacked_array", "stacked_tensor", "tensor_from", "tensors_from"]

_WAY_OUT = "Pad or crop them in the dataset, or give the DataLoader a collate_fn that does."

Stack = Callable[[list, str], Any]


class UnevenBatchError(Exception):
    """Two samples that do not fit into one batch.

    Args:
        kind: the type of the error that the user sees.
        position: which sample of the batch does not fit to the first.
        what: how they differ.
    """

    def __init__(self, kind: type[Exception], position: int, what: str) -> None:
        super().__init__(what)
        self.kind, self.position, self.what = kind, position, what

    def told(self, numbers: Sequence[Any] | None) -> Exception:
        """The error for the user. ``numbers`` are those of the batch's samples in the dataset."""
        if numbers is not None and self.position < len(numbers):
            pair = f"samples {numbers[0]} and {numbers[self.position]} of the dataset"
        else:
            pair = f"samples 0 and {self.position} of the batch"
        return self.kind(f"[DataLoader] {pair} do not fit into one batch: {self.what}. {_WAY_OUT}")


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """Stack samples field by field.

    Arrays and numbers become one array with a batch axis in front, tensors one tensor; strings stay a list;
    dictionaries and lists are followed inwards.

    Args:
        batch: the samples.

    Returns:
        the batch: an array, a tensor, or a dictionary or list of them.

    Examples:
        >>> import numpy as np
        >>> from oar.io.dataloader import default_collate_fn
        >>> batch = default_collate_fn([(np.array([1.0]), 0), (np.array([2.0]), 1)])
        >>> [field.shape for field in batch]
        [(2, 1), (2,)]
    """
    try:
        return collated(batch, _stacked_alike)
    except UnevenBatchError as error:
        raise error.told(None) from None


def collated(batch: Sequence[Any], stack: Stack, where: str = "") -> Any:
    """What ``default_collate_fn`` returns, with arrays and tensors stacked by ``stack(samples, where)``."""
    sample = batch[0]
    if isinstance(sample, (Tensor, np.ndarray)):
        return stack(list(batch), where)
    if isinstance(sample, (numbers.Number, np.number, np.bool_)):
        return np.array(batch)
    if isinstance(sample, (str, bytes)):
        return list(batch)
    if isinstance(sample, Mapping):
        return {key: collated(_entries(batch, key, where), stack, f"{where}[{key!r}]") for key in sample}
    if isinstance(sample, Sequence):
        _check_lengths(batch, where)
        return [collated(fields, stack, f"{where}[{number}]") for number, fields in enumerate(zip(*batch))]
    raise TypeError(
        f"[DataLoader] a sample should hold tensors, arrays, numbers, strings, or dictionaries or lists of them, but "
        f"{_field(where)} is a {type(sample).__name__}. Give the DataLoader a collate_fn for it."
    )


def _field(where: str) -> str:
    """The words for a part of a sample, which ``where`` names as an index expression."""
    return f"sample{where}" if where else "the sample"


def _entries(batch: Sequence[Any], key: Any, where: str) -> list[Any]:
    for position, sample in enumerate(batch):
        if not isinstance(sample, Mapping) or key not in sample:
            has = list(sample) if isinstance(sample, Mapping) else type(sample).__name__
            raise UnevenBatchError(KeyError, position, f"{_field(where)} has {key!r} in the one, but only {has} in the other")
    return [sample[key] for sample in batch]


def _check_lengths(batch: Sequence[Any], where: str) -> None:
    length = len(batch[0])
    for position, sample in enumerate(batch):
        fields = len(sample) if isinstance(sample, Sequence) else 0
        if fields != length:
            what = f"{_field(where)} has {length} fields in the one and {fields} in the other"
            raise UnevenBatchError(RuntimeError, position, what)


def stacked_array(samples: list[Any], where: str, empty: Callable[[tuple[int, ...], Any], np.ndarray]) -> np.ndarray:
    """Arrays and tensors as the rows of one array, which is made by ``empty(shape, dtype)``."""
    first = samples[0]
    array = first if isinstance(first, np.ndarray) else first.numpy()
    if is_numeric(array.dtype) and array.dtype.isnative:
        out = empty((len(samples), *array.shape), array.dtype)
        if _C.stack_into(samples, out) < 0:
            return out
    return _stacked_by_numpy(samples, where)


def _stacked_alike(samples: list[Any], where: str) -> Any:
    if isinstance(samples[0], np.ndarray):
        return stacked_array(samples, where, np.empty)
    return tensor_from(stacked_tensor(samples, where))


def stacked_tensor(samples: list[Any], where: str) -> Any:
    """Arrays and tensors as the rows of one tensor; an array if their dtypes differ, or none of a tensor's."""
    made = _C.stack_samples(samples)
    return made if isinstance(made, Tensor) else _stacked_by_numpy(samples, where)


def _stacked_by_numpy(samples: list[Any], where: str) -> np.ndarray:
    """For mixed dtypes, which are promoted, and for dtypes that tensors do not have."""
    shape = list(np.shape(samples[0]))
    for position, sample in enumerate(samples):
        if list(np.shape(sample)) != shape:
            what = f"{_field(where)} has shape {shape} in the one and {list(np.shape(sample))} in the other"
            raise UnevenBatchError(ValueError, position, what)
    return np.stack([sample.numpy() if isinstance(sample, Tensor) else sample for sample in samples], axis=0)


def default_convert_fn(batch: Any) -> Any:
    """A sample as it is: what a loader without batching does.

    Args:
        batch: the sample.

    Returns:
        the same.

    Examples:
        >>> from oar.io.dataloader import default_convert_fn
        >>> default_convert_fn([1, 'a'])
        [1, 'a']
    """
    return batch


def tensor_from(value: Any) -> Any:
    """An array or a NumPy number as a tensor of its own memory; other things as they are."""
    if isinstance(value, (np.number, np.bool_)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and is_numeric(value.dtype):
        return _C.adopt_array(np.array(native(value)))  # no op, which would become part of a static program
    return value


def tensors_from(batch: Any) -> Any:
    """``batch`` with every array turned into a tensor."""
    return mapped(batch, tensor_from)
