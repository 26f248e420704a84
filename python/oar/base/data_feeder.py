"""Names of dtypes."""

from __future__ import annotations

from oar import _C

__all__ = ["convert_dtype"]


def convert_dtype(dtype) -> str:
    """The name of a dtype that is given as a name, as Oar's or as NumPy's."""
    return _C.dtype(dtype).name
