"""Lists of tensors. The index may be a tensor whose value is known: in eager mode any, in a program a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._framework import sizes_tensor

__all__ = ["array_length", "array_read", "array_write", "create_array", "tensor_array_to_tensor"]


def create_array(dtype: Any, initialized_list: Sequence[Tensor] | None = None) -> list[Tensor]:
    """A list that holds these tensors at first."""
    made = list(initialized_list or ())
    for item in made:
        if not isinstance(item, Tensor):
            raise TypeError(f"[create_array] initialized_list should hold tensors, but received {type(item).__name__}.")
    return made


def _index(op: str, i: Any) -> int:
    if not isinstance(i, (Tensor, int)):
        raise TypeError(f"[{op}] i should be an integer or a tensor with one, but received {type(i).__name__}.")
    if isinstance(i, Tensor) and i.size != 1:
        raise ValueError(f"[{op}] i should have one element, but has shape {i.shape}.")
    return int(i)


def array_write(x: Tensor, i: Any, array: list[Tensor] | None = None) -> list[Tensor]:
    """Put a tensor in place ``i``, at the end at most; a new list when ``array`` is None."""
    array = [] if array is None else array
    place = _index("array_write", i)
    if not 0 <= place <= len(array):
        raise IndexError(f"[array_write] place {place} is beyond the end of a list of {len(array)}.")
    array[place : place + 1] = [x]
    return array


def array_read(array: list[Tensor], i: Any) -> Tensor:
    """The tensor in place ``i``."""
    if not isinstance(array, list):
        raise TypeError(f"[array_read] array should be a list, but received {type(array).__name__}.")
    return array[_index("array_read", i)]


def array_length(array: list[Tensor]) -> Tensor:
    """How many there are, as a tensor."""
    if not isinstance(array, list):
        raise TypeError(f"[array_length] array should be a list, but received {type(array).__name__}.")
    return oar.to_tensor([len(array)], "int64")


def tensor_array_to_tensor(
    input: list[Tensor], axis: int = 1, use_stack: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The tensors of a list joined along an axis, or stacked, and the size of each along it."""
    if not isinstance(input, (list, tuple)):
        raise TypeError(
            f"[tensor_array_to_tensor] input should be a list of tensors, but received {type(input).__name__}."
        )
    for item in input:
        if not isinstance(item, Tensor):
            raise TypeError(f"[tensor_array_to_tensor] input should hold tensors, but received {type(item).__name__}.")
    sizes = [1 if use_stack else item.shape[axis] for item in input]
    joined = oar.stack(list(input), axis) if use_stack else oar.concat(list(input), axis)
    return joined, sizes_tensor(sizes, "int32")
