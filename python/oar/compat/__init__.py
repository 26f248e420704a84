"""Functions whose arguments and results are PyTorch's where Paddle's differ."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import oar
from oar._C import Tensor, ops
from oar.compat import nn
from oar.compat.proxy import (
    disable_compat as disable_torch_proxy, enable_compat as enable_torch_proxy, use_compat_guard as use_torch_proxy_guard)

__all__ = ["equal", "max", "median", "min", "nanmedian", "seed", "slogdet", "sort", "split", "unique"]


class MinMaxRetType(NamedTuple):
    """What ``max`` and ``min`` along an axis return."""

    values: Tensor
    indices: Tensor


class MedianRetType(NamedTuple):
    """What ``median`` and ``nanmedian`` along an axis return."""

    values: Tensor
    indices: Tensor


class SlogdetResult(NamedTuple):
    """What ``slogdet`` returns."""

    sign: Tensor
    logabsdet: Tensor


class SortRetType(NamedTuple):
    """What ``sort`` returns."""

    values: Tensor
    indices: Tensor


def _written(results: tuple[Tensor, Tensor], out: Sequence[Tensor] | None) -> tuple[Tensor, Tensor]:
    if out is None:
        return results
    if not isinstance(out, (list, tuple)) or len(out) != 2:
        raise TypeError("out must be two tensors, one for each result.")
    return ops.copy_into(out[0], results[0]), ops.copy_into(out[1], results[1])


def _extreme(name: str, values: Any, places: Any, elementwise: Any) -> Any:
    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        dim, keepdim, other = _extreme_arguments(name, args, kwargs)
        if other is not None:
            made = elementwise(input, other)
        elif dim is None:
            made = values(input)
        else:
            indices = places(input, dim, keepdim)
            wide = indices if keepdim else ops.unsqueeze(indices, [dim])
            found = ops.take_along_axis(input, wide, dim)
            pair = found if keepdim else ops.squeeze(found, [dim]), indices
            return MinMaxRetType(*_written(pair, out))
        return made if out is None else ops.copy_into(out, made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {name}imum of all elements, of elements along an axis, or of two tensors element by element.

    Args:
        input: the tensor.
        args: nothing; or ``dim`` and ``keepdim``, for an axis; or ``other``, for another tensor.
        out: a tensor to write to, or for an axis two of them.
        kwargs: the same by name.

    Returns:
        a tensor; for an axis, a tuple with ``values`` and ``indices``.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 5.0], [3.0, 2.0]])
        >>> oar.compat.{name}(x).item()
        {5.0 if name == "max" else 1.0}
        >>> values, indices = oar.compat.{name}(x, 1)
        >>> values.tolist(), indices.tolist()
        {([5.0, 3.0], [1, 0]) if name == "max" else ([1.0, 2.0], [0, 1])}
        >>> oar.compat.{name}(x, oar.full([2, 2], 2.5)).tolist()
        {[[2.5, 5.0], [3.0, 2.5]] if name == "max" else [[1.0, 2.5], [2.5, 2.0]]}
    """
    return function


def _extreme_arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int | None, bool, Tensor | None]:
    if args and isinstance(args[0], Tensor):
        kwargs = {"other": args[0], **dict(zip(("keepdim",), args[1:])), **kwargs}
    else:
        kwargs = {**dict(zip(("dim", "keepdim"), args)), **kwargs}
    unknown = kwargs.keys() - {"dim", "keepdim", "other"}
    if unknown or len(args) > 2 or ("other" in kwargs and len(kwargs) > 1):
        raise TypeError(f"[{name}] takes (input), (input, dim, keepdim=False) or (input, other), not {sorted(kwargs)}.")
    if "keepdim" in kwargs and "dim" not in kwargs:
        raise TypeError(f"[{name}] keepdim needs a dim.")
    return kwargs.get("dim"), kwargs.get("keepdim", False), kwargs.get("other")


max = _extreme("max", ops.max, lambda x, dim, keepdim: ops.argmax(x, dim, keepdim), ops.maximum)
min = _extreme("min", ops.min, lambda x, dim, keepdim: ops.argmin(x, dim, keepdim), ops.minimum)


def _middle(function: Any, name: str) -> Any:
    def middle(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            made = function(input, None, keepdim, "min")
            return made if out is None else ops.copy_into(out, made)
        return MedianRetType(*_written(function(input, dim, keepdim, "min"), out))

    middle.__name__ = middle.__qualname__ = name
    middle.__doc__ = f"""The {"median of the elements that are numbers" if name == "nanmedian" else "median"}: of an even number
    of elements, the lower one of the two in the middle.

    Args:
        input: the tensor.
        dim: the axis; None takes all elements.
        keepdim: whether the axis stays, with size 1.
        out: a tensor to write to, or for an axis two of them.

    Returns:
        a tensor; for an axis, a tuple with ``values`` and ``indices``.

    Examples:
        >>> import oar
        >>> oar.compat.{name}(oar.to_tensor([4.0, 1.0, 3.0, 2.0])).item()
        2.0
        >>> values, indices = oar.compat.{name}(oar.to_tensor([[4.0, 1.0, 3.0]]), 1)
        >>> values.tolist(), indices.tolist()
        ([3.0], [2])
    """
    return middle


median, nanmedian = _middle(oar.median, "median"), _middle(oar.nanmedian, "nanmedian")


def slogdet(x: Tensor, out: Sequence[Tensor] | None = None) -> SlogdetResult:
    """The sign of the determinant of square matrices, and the logarithm of its absolute value.

    Args:
        x: matrices, ``[..., n, n]``.
        out: two tensors to write to, or None.

    Returns:
        a tuple with ``sign`` and ``logabsdet``; the sign of a complex determinant is a number of absolute value 1.

    Examples:
        >>> import oar
        >>> result = oar.compat.slogdet(oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]))
        >>> result.sign.item(), round(result.logabsdet.exp().item(), 5)
        (-1.0, 6.0)
    """
    return SlogdetResult(*_written(ops.slogdet_parts(x), out))


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False,
         out: Sequence[Tensor] | None = None) -> SortRetType:
    """The elements in order along an axis, and where they were.

    Args:
        input: the tensor.
        dim: the axis.
        descending: whether the largest comes first.
        stable: whether equal elements keep their order.
        out: two tensors to write to, or None.

    Returns:
        a tuple with ``values`` and ``indices``.

    Examples:
        >>> import oar
        >>> values, indices = oar.compat.sort(oar.to_tensor([3.0, 1.0, 2.0]))
        >>> values.tolist(), indices.tolist()
        ([1.0, 2.0, 3.0], [1, 2, 0])
    """
    if input.ndim == 0:
        pair = ops.assign(input), ops.zeros([], "int64")
    else:
        places = ops.argsort(input, dim, descending, stable)
        pair = ops.take_along_axis(input, places, dim), places
    return SortRetType(*_written(pair, out))


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one size along an axis, of which the last may be smaller; or parts of given sizes.

    Args:
        tensor: the tensor.
        split_size_or_sections: the size of each part, or a list of sizes.
        dim: the axis.

    Returns:
        a tuple of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.compat.split(oar.to_tensor([1, 2, 3, 4, 5]), 2)]
        [[1, 2], [3, 4], [5]]
    """
    if not -tensor.ndim <= dim < tensor.ndim:
        raise ValueError(f"[split] there is no axis {dim} in a tensor of shape {list(tensor.shape)}.")
    size = tensor.shape[dim]
    sizes: list[int]
    if isinstance(split_size_or_sections, int):
        part = split_size_or_sections
        if part <= 0:
            raise ValueError(f"[split] the size of the parts must be at least 1, not {part}.")
        sizes = [builtins.min(part, size - start) for start in range(0, size, part)] or [0]
    else:
        sizes = [int(s) for s in split_size_or_sections]
        if sum(sizes) != size or builtins.min(sizes, default=0) < 0:
            raise ValueError(f"[split] the sizes {sizes} do not add up to {size}, the size of axis {dim}.")
    return tuple(oar.split(tensor, sizes, dim))


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The different elements, or the different slices along an axis, in order.

    Args:
        input: the tensor.
        sorted: accepted for compatibility; the result is always in order.
        return_inverse: whether to return which of them every element is.
        return_counts: whether to return how often each occurs.
        dim: the axis; None takes all elements.

    Returns:
        a tensor, or a tuple of two or three.

    Examples:
        >>> import oar
        >>> values, places, counts = oar.compat.unique(oar.to_tensor([3, 1, 3]), return_inverse=True, return_counts=True)
        >>> values.tolist(), places.tolist(), counts.tolist()
        ([1, 3], [1, 0, 1], [1, 2])
    """
    results = oar.unique(input, False, return_inverse, return_counts, dim)
    if dim is not None or not return_inverse:
        return results
    return (results[0], ops.reshape(results[1], list(input.shape)), *results[2:])


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    Args:
        input: the tensor.
        other: the other tensor.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0])
        >>> oar.compat.equal(x, x + 0), oar.compat.equal(x, x[:1])
        (True, False)
    """
    return list(input.shape) == list(other.shape) and bool(ops.all(ops.equal(input, other)))


def seed() -> int:
    """Starts the random stream anew with a seed that the operating system draws.

    Returns:
        the seed.

    Examples:
        >>> import oar
        >>> isinstance(oar.compat.seed(), int)
        True
    """
    return oar.Generator().seed()
