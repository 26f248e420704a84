"""Dividing tensors along an axis."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar._spelling import spelled

__all__ = ["dsplit", "hsplit", "split", "tensor_split", "vsplit"]


def _numbers(given) -> list:
    """A list of ints from a list (whose items may be 0-d tensors) or a tensor."""
    if isinstance(given, Tensor):
        return given.tolist() if given.ndim else [given.item()]
    return [item.item() if isinstance(item, Tensor) else item for item in given]


@spelled
def split(x: Tensor, num_or_sections, axis: int = 0, name: str | None = None) -> list[Tensor]:
    """Equal parts along an axis, given their number; pieces of the given sizes, given a list. Views.

    Args:
        x: the input.
        num_or_sections: the number of equal parts, or a list of sizes (one may be -1).
        axis: the axis to work along; a negative one counts from the end.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.split(oar.to_tensor([1, 2, 3, 4]), 2)]
        [[1, 2], [3, 4]]
        >>> [part.tolist() for part in oar.split(oar.to_tensor([1, 2, 3, 4]), [1, 3])]
        [[1], [2, 3, 4]]
    """
    if isinstance(num_or_sections, (list, tuple)) or (isinstance(num_or_sections, Tensor) and num_or_sections.ndim):
        return ops.split_sections(x, _numbers(num_or_sections), axis)
    return ops.split(x, [num_or_sections], axis)


@spelled
def tensor_split(x: Tensor, num_or_indices, axis: int = 0, name: str | None = None) -> list[Tensor]:
    """Nearly equal parts along an axis, given their number; x cut before each index, given a list. Views.

    Args:
        x: the input.
        num_or_indices: the number of parts, or a list of the indices to cut at.
        axis: the axis to work along; a negative one counts from the end.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.tensor_split(oar.to_tensor([1, 2, 3, 4, 5]), 2)]
        [[1, 2, 3], [4, 5]]
        >>> [part.tolist() for part in oar.tensor_split(oar.to_tensor([1, 2, 3, 4, 5]), [1, 3])]
        [[1], [2, 3], [4, 5]]
    """
    if isinstance(num_or_indices, (list, tuple)) or (isinstance(num_or_indices, Tensor) and num_or_indices.ndim):
        return ops.tensor_split_at(x, _numbers(num_or_indices), axis)
    return ops.tensor_split(x, [num_or_indices], axis)


def _split_along(name: str, x: Tensor, num_or_indices, axis: int, rank: int) -> list[Tensor]:
    if x.ndim < rank:
        raise ValueError(f"[{name}] x has shape {list(x.shape)}; {name} needs {rank} axes or more.")
    return tensor_split(x, num_or_indices, axis)


@spelled
def hsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 1; a vector along its only axis.

    Args:
        x: the input.
        num_or_indices: the number of parts, or a list of the indices to cut at.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.hsplit(oar.to_tensor([[1, 2], [3, 4]]), 2)]
        [[[1], [3]], [[2], [4]]]
    """
    return _split_along("hsplit", x, num_or_indices, 1 if x.ndim > 1 else 0, 1)


@spelled
def vsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 0.

    Args:
        x: the input.
        num_or_indices: the number of parts, or a list of the indices to cut at.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.vsplit(oar.to_tensor([[1, 2], [3, 4]]), 2)]
        [[[1, 2]], [[3, 4]]]
    """
    return _split_along("vsplit", x, num_or_indices, 0, 2)


@spelled
def dsplit(x: Tensor, num_or_indices, name: str | None = None) -> list[Tensor]:
    """``tensor_split`` along axis 2.

    Args:
        x: the input.
        num_or_indices: the number of parts, or a list of the indices to cut at.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.shape for part in oar.dsplit(oar.zeros([2, 3, 4]), 2)]
        [[2, 3, 2], [2, 3, 2]]
    """
    return _split_along("dsplit", x, num_or_indices, 2, 3)


for _name in __all__:
    setattr(Tensor, _name, globals()[_name])
