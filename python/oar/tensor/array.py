"""Lists of tensors. The index may be a tensor whose value is known: in eager mode any, in a program a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._framework import in_dynamic_mode
from oar._questions import sizes_tensor

__all__ = ["array_length", "array_read", "array_write", "create_array", "tensor_array_to_tensor"]


def create_array(dtype: Any, initialized_list: Sequence[Tensor] | None = None) -> list[Tensor]:
    """A list that holds these tensors at first.

    Args:
        dtype: the dtype of the result; None takes the default, or that of the input.
        initialized_list: tensors to start with, or None.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> array = oar.tensor.create_array('float32')
        >>> array = oar.tensor.array_write(oar.to_tensor([1.0]), oar.to_tensor([0]), array)
        >>> len(array)
        1
    """
    made = list(initialized_list or ())
    for item in made:
        if not isinstance(item, Tensor):
            raise TypeError(f"[create_array] initialized_list should hold tensors, but received {type(item).__name__}.")
    return made if in_dynamic_mode() else TensorArray(made)


class TensorArray(list[Tensor]):
    """The tensors of an array in a static program. What is read from it has no gradient if ``stop_gradient`` is set.

    Args:
        items: the tensors.

    Examples:
        >>> import oar
        >>> array = oar.tensor.array.TensorArray([oar.to_tensor([1.0])])
        >>> len(array), array.stop_gradient
        (1, False)
    """

    is_tensor_array = True
    stop_gradient = False


def _read(array: Sequence[Tensor], i: int) -> Tensor:
    return array[i].detach() if getattr(array, "stop_gradient", False) else array[i]


def _index(op: str, i: Any) -> int:
    if not isinstance(i, (Tensor, int)):
        raise TypeError(f"[{op}] i should be an integer or a tensor with one, but received {type(i).__name__}.")
    if isinstance(i, Tensor) and i.size != 1:
        raise ValueError(f"[{op}] i should have one element, but has shape {i.shape}.")
    return int(i)


def array_write(x: Tensor, i: Any, array: list[Tensor] | None = None) -> list[Tensor]:
    """Put a tensor in place ``i``, at the end at most; a new list when ``array`` is None.

    Args:
        x: the input.
        i: the place, a tensor or an integer.
        array: the list.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> array = oar.tensor.array_write(oar.to_tensor([1.0]), oar.to_tensor([0]))
        >>> oar.tensor.array_read(array, oar.to_tensor([0]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.])
    """
    array = create_array(x.dtype) if array is None else array
    place = _index("array_write", i)
    if not 0 <= place <= len(array):
        raise IndexError(f"[array_write] place {place} is beyond the end of a list of {len(array)}.")
    array[place : place + 1] = [x]
    return array


def array_read(array: list[Tensor], i: Any) -> Tensor:
    """The tensor in place ``i``.

    Args:
        array: the list.
        i: the place, a tensor or an integer.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> array = oar.tensor.array_write(oar.to_tensor([1.0]), oar.to_tensor([0]))
        >>> oar.tensor.array_read(array, oar.to_tensor([0]))
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.])
    """
    if not isinstance(array, list):
        raise TypeError(f"[array_read] array should be a list, but received {type(array).__name__}.")
    return _read(array, _index("array_read", i))


def array_length(array: list[Tensor]) -> Tensor:
    """The number of tensors in the list, as a tensor.

    Args:
        array: the list.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> array = oar.tensor.array_write(oar.to_tensor([1.0]), oar.to_tensor([0]))
        >>> oar.tensor.array_length(array).item()
        1
    """
    if not isinstance(array, list):
        raise TypeError(f"[array_length] array should be a list, but received {type(array).__name__}.")
    return oar.to_tensor([len(array)], "int64")


def tensor_array_to_tensor(
    input: list[Tensor], axis: int = 1, use_stack: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The tensors of a list joined along an axis, or stacked, and the size of each along it.

    Args:
        input: the input.
        axis: the axis to work along; a negative one counts from the end.
        use_stack: whether to stack instead of join.

    Returns:
        two tensors, as described above.

    Examples:
        >>> import oar
        >>> joined, sizes = oar.tensor.tensor_array_to_tensor([oar.ones([2, 1]), oar.ones([2, 3])], axis=1)
        >>> joined.shape, sizes.tolist()
        ([2, 4], [1, 3])
    """
    if not isinstance(input, (list, tuple)):
        raise TypeError(
            f"[tensor_array_to_tensor] input should be a list of tensors, but received {type(input).__name__}."
        )
    for item in input:
        if not isinstance(item, Tensor):
            raise TypeError(f"[tensor_array_to_tensor] input should hold tensors, but received {type(item).__name__}.")
    sizes = [1 if use_stack else item.shape[axis] for item in input]
    held = [_read(input, i) for i in range(len(input))]
    joined = oar.stack(held, axis) if use_stack else oar.concat(held, axis)
    return joined, sizes_tensor(sizes, "int32")
