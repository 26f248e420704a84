"""How a batch travels from a worker to its parent: its arrays in a slot, the rest through a pipe."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any

from oar._C import Tensor
from oar._lazy import np
from oar.io._slots import Arena, Spot

__all__ = ["is_numeric", "mapped", "native", "pack", "unpack"]


def is_numeric(dtype: Any) -> bool:
    """Whether tensors can have a dtype of NumPy: not text, objects, dates or records."""
    return dtype.kind in "biufc" or (dtype.kind == "V" and dtype.names is None and dtype.name != f"void{dtype.itemsize * 8}")


def native(array: np.ndarray) -> np.ndarray:
    """The array with its bytes in the order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def mapped(batch: Any, leaf: Callable[[Any], Any]) -> Any:
    """``batch`` with ``leaf`` applied to what its dictionaries, lists and tuples hold."""
    if isinstance(batch, Mapping):
        return {key: mapped(value, leaf) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(mapped(value, leaf) for value in batch))
    if isinstance(batch, (list, tuple)) and not isinstance(batch, Spot):
        return [mapped(value, leaf) for value in batch]
    return leaf(batch)


def pack(batch: Any, arena: Arena | None) -> bytes:
    """What goes through the pipe. It holds spots in place of the arrays that are in the arena."""

    def packed(value: Any) -> Any:
        if isinstance(value, Tensor):
            value = value.numpy()
        if arena is not None and isinstance(value, np.ndarray) and is_numeric(value.dtype):
            return arena.spot(native(value)) or value
        return value

    return pickle.dumps(mapped(batch, packed), protocol=5)


def unpack(head: bytes, from_spot: Callable[[Spot], Any], from_other: Callable[[Any], Any]) -> Any:
    """The batch that ``pack`` stored, with tensors made of spots by ``from_spot``, and of other things by ``from_other``."""
    return mapped(pickle.loads(head), lambda value: from_spot(value) if type(value) is Spot else from_other(value))
