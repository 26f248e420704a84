"""Dtypes that calls in static mode refuse, as Paddle's do."""

from __future__ import annotations

import functools
import os
from typing import Any

from oar import _C

__all__ = ["check_dtype"]


@functools.lru_cache(maxsize=None)
def _refused() -> dict[str, tuple[str, ...]]:
    """The dtypes that each function refuses."""
    with open(os.path.join(os.path.dirname(__file__), "refused_dtypes.txt"), encoding="utf-8") as file:
        text = "".join(line for line in file if not line.startswith("#")).replace("\n  ", " ")
    table: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        dtypes, functions = line.split(":")
        table.update(dict.fromkeys(functions.split(), tuple(dtypes.split())))
    return table


def check_dtype(function: str, dtype: Any) -> None:
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
