"""``oar.static``'s executor under its other path."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._lazy import np
from oar.static.executor import Executor
from oar.static.scope import LoDTensor, Scope, global_scope, scope_guard

__all__ = ["Executor", "Scope", "global_scope", "scope_guard"]


def _as_lodtensor(data: Any, place: Any, dtype: Any = None) -> LoDTensor:
    """Numbers, or an array, as what a program is fed."""
    if not isinstance(data, np.ndarray):
        if dtype is None:
            raise AssertionError("pass the dtype for data that is not an array.")
        if not np.isscalar(data) and not isinstance(data, (list, tuple)):
            raise TypeError(f"numbers, lists of them or an array are expected, not {type(data).__name__}.")
        data = np.array(data)
        if data.dtype == object:
            raise TypeError("the lists are not numbers in rows of one length.")
        data = data.astype(_C.dtype(dtype).name)
    made = LoDTensor()
    made.set(data, place)
    return made
