"""Paddle's guards around its two kinds of programs. Oar has one kind, so what is left is the mode."""

from __future__ import annotations

from typing import Any

from oar._framework import in_dynamic_mode
from oar.static.program import mode

__all__ = ["DygraphOldIrGuard", "DygraphPirGuard", "IrGuard", "OldIrGuard", "ir_guard"]


class IrGuard:
    """Static mode within the block.

    Examples:
        >>> import oar
        >>> with oar.IrGuard():
        ...     print(oar.in_dynamic_mode())
        ...
        False
    """

    def __enter__(self) -> None:
        self._mode = mode(True)
        self._mode.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._mode.__exit__(*exc)


ir_guard = IrGuard()


class OldIrGuard(IrGuard):
    """As ``IrGuard``."""


class DygraphPirGuard:
    """The mode is as outside."""

    def __enter__(self) -> None:
        self._mode = mode(not in_dynamic_mode())
        self._mode.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._mode.__exit__(*exc)


class DygraphOldIrGuard(DygraphPirGuard):
    """As ``DygraphPirGuard``."""
