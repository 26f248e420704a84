"""From samples to a batch, and from arrays to tensors."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np

__all__ = ["default_collate_fn", "default_convert_fn", "tensors_from"]


_WAY_OUT = "Pad them in the dataset, or give the DataLoader a collate_fn that does."


def default_collate_fn(batch: Sequence[Any]) -> Any:
    """Stack samples field by field.

    Arrays, tensors and numbers become one array with a batch axis in front; strings stay a list;
    dictionaries and lists are followed inwards.

    Args:
        batch: the samples.

    Examples:
        >>> import oar
        >>> from oar.io.dataloader import default_collate_fn
        >>> batch = default_collate_fn([(oar.to_tensor([1.0]), 0), (oar.to_tensor([2.0]), 1)])
        >>> [field.shape for field in batch]
        [(2, 1), (2,)]
    """
    sample = batch[0]
    if isinstance(sample, (Tensor, np.ndarray)):
        return _stacked(batch)
    if isinstance(sample, (numbers.Number, np.number, np.bool_)):
        return np.array(batch)
    if isinstance(sample, (str, bytes)):
        return list(batch)
    if isinstance(sample, Mapping):
        return {key: default_collate_fn([_entry(item, key) for item in batch]) for key in sample}
    if isinstance(sample, Sequence):
        if any(len(item) != len(sample) for item in batch):
            lengths = sorted({len(item) for item in batch})
            raise RuntimeError(f"Samples of one batch must have as many fields each, but have {lengths}. "
                               f"{_WAY_OUT}")
        return [default_collate_fn(list(fields)) for fields in zip(*batch)]
    raise TypeError(
        "A sample should hold tensors, arrays, numbers, strings, or dictionaries or lists of them, but holds a "
        f"{type(sample).__name__}. Give the DataLoader a collate_fn for it."
    )


def _stacked(batch: Sequence[Any]) -> np.ndarray:
    shapes = sorted({tuple(np.shape(item)) for item in batch})
    if len(shapes) > 1:
        raise ValueError(f"Samples of one batch must have the same shape, but have {', '.join(map(str, shapes))}. "
                         f"{_WAY_OUT}")
    return np.stack([item.numpy() if isinstance(item, Tensor) else item for item in batch], axis=0)


def _entry(sample: Mapping, key: Any) -> Any:
    if key not in sample:
        raise KeyError(f"Samples of one batch must have the same keys, but one has no {key!r}: {list(sample)}.")
    return sample[key]


def default_convert_fn(batch: Any) -> Any:
    """A sample as it is: what a loader without batching does."""
    return batch


def tensors_from(batch: Any) -> Any:
    """``batch`` with every array turned into a tensor."""
    if isinstance(batch, np.ndarray):
        # Text and objects stay arrays, with their own memory: the batch's may be reused.
        return batch.copy() if batch.dtype.kind in "USOMmV" else oar.to_tensor(batch)
    if isinstance(batch, (np.number, np.bool_)):
        return oar.to_tensor(np.asarray(batch))
    if isinstance(batch, Mapping):
        return {key: tensors_from(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(tensors_from(value) for value in batch))
    if isinstance(batch, (list, tuple)):
        return [tensors_from(value) for value in batch]
    return batch


def arrays_from(batch: Any) -> Any:
    """``batch`` with every tensor turned into an array: what a worker may send."""
    if isinstance(batch, Tensor):
        return batch.numpy()
    if isinstance(batch, Mapping):
        return {key: arrays_from(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(arrays_from(value) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(arrays_from(value) for value in batch)
    return batch
