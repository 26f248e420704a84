"""Annotations of tensors: sizes and dtypes that a function takes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DTypeVar", "DimVar", "Tensor"]


class DimVar:
    """A size: a number, or a name for any number. Sizes of one name are equal.

    Args:
        name_or_value: the number or the name.
        min: the least size.
        max: the greatest size.
    """

    def __init__(self, name_or_value: str | int, min: int | None = None, max: int | None = None) -> None:
        self.name_or_value, self.min, self.max = name_or_value, min, max

    def __repr__(self) -> str:
        return str(self.name_or_value)


class DTypeVar:
    """One of several dtypes. Tensors whose dtypes have one name have the same dtype.

    Args:
        name: the name.
        candidates: the dtypes, as strings.
    """

    def __init__(self, name: str, *candidates: str) -> None:
        if not candidates or len(set(candidates)) != len(candidates) or not all(isinstance(c, str) for c in candidates):
            raise ValueError(f"[DTypeVar] {name} needs one or more different names of dtypes, not {candidates}.")
        self.name, self.candidates = name, candidates


class Tensor:
    """A tensor of a shape and dtype.

    Args:
        shape: a number or a ``DimVar`` for each axis.
        dtype: a ``DTypeVar``.
    """

    def __init__(self, shape: Sequence[DimVar | int], dtype: DTypeVar) -> None:
        self.shape, self.dtype = shape, dtype


Dim, DType = DimVar, DTypeVar
