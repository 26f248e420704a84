"""Dtypes that calls in static mode refuse, as Paddle's do."""

from __future__ import annotations

import functools
import os
from typing import Any

from oar import _C

__all__ = ["check_dtype_argument", "check_operand"]


@functools.lru_cache(maxsize=None)
def _refused() -> dict[str, tuple[str, ...]]:
    """The dtypes that each function refuses; those of its argument ``dtype`` under ``dtype=`` and its name."""
    with open(os.path.join(os.path.dirname(__file__), "refused_dtypes.txt"), encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#")).replace("\n  ", " ")
    table: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        dtypes, functions = line.split(":")
        prefix = "dtype=" if dtypes.startswith("dtype=") else ""
        table.update(dict.fromkeys((prefix + name for name in functions.split()), tuple(dtypes.removeprefix(prefix).split())))
    return table


def check_operand(function: str, dtype: Any) -> None:
    """Raises if a function does not take operands of this dtype in a static program.

    Args:
        function: the name that the user called.
        dtype: of its first operand.
    """
    if dtype.name in _refused().get(function, ()):
        raise _C.ArgumentTypeError(
            f"[{function}] the first operand has dtype {dtype.name}, for which Paddle has no kernel in static mode. "
            "Cast it first, for example x.astype('float32')."
        )


def check_dtype_argument(function: str, dtype: Any) -> None:
    """Raises if a function has no results of this dtype in a static program.

    Args:
        function: the name that the user called.
        dtype: its argument ``dtype``.
    """
    refused = _refused().get("dtype=" + function, ())
    if refused and _C.dtype(dtype).name in refused:
        raise _C.ArgumentTypeError(
            f"[{function}] dtype is {_C.dtype(dtype).name}, for which Paddle has no kernel in static mode. "
            "Cast the result instead."
        )
