"""Composite ops as primitives. Oar expands what a device has no kernel for when a program is prepared to run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oar._C import Tensor
from oar.static.program import Program

__all__ = ["decompose"]


def decompose(program: Program, src_vars: Sequence[Tensor], blacklist: Collection[str] = frozenset(),
              whitelist: Collection[str] = frozenset()) -> list[Tensor]:
    """Returns the variables unchanged: a program keeps its ops whole until it runs, and the values are the same.

    Args:
        program: where the variables are.
        src_vars: variables of it.
        blacklist: ops that are to stay whole; kept whole they are all.
        whitelist: ops to expand.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> len(oar.decomposition.decompose(oar.static.Program(), []))
        0
    """
    if not isinstance(program, Program):
        raise TypeError(f"[decompose] program should be a Program, but received {type(program).__name__}.")
    return list(src_vars)
