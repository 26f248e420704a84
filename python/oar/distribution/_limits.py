"""The limits of dtypes as Python numbers, which captured functions read without NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oar._C import dtype as DType

__all__ = ["epsilon", "smallest"]

_EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
_SMALLEST = {"bfloat16": 2.0**-126, "float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next number."""
    return _EPSILON[dtype.name]


def smallest(dtype: DType) -> float:
    """The smallest positive normal number."""
    return _SMALLEST[dtype.name]
