"""Paddle's guards around its two kinds of programs.

Oar has one kind. What is left is the mode, and the names in which a program shows its calls.
"""

from __future__ import annotations

import contextlib
from typing import Any

from oar._framework import in_dynamic_mode
from oar.static.program import mode, older_programs

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
        self._mode = contextlib.ExitStack()
        self._mode.enter_context(mode(True))

    def __exit__(self, *exc: Any) -> None:
        self._mode.__exit__(*exc)


ir_guard = IrGuard()


class OldIrGuard(IrGuard):
    """As ``IrGuard``. Programs created inside show their calls in the names that ``Block.append_op`` takes.

    Examples:
        >>> import oar
        >>> with oar.pir_utils.OldIrGuard():
        ...     block = oar.static.Program().global_block()
        ...     w = block.create_parameter([2], 'float32', 'w', oar.nn.initializer.Constant(0.5))
        ...
        >>> [(op.type, op.attr('value')) for op in block.ops]
        [('fill_constant', 0.5)]
    """

    def __enter__(self) -> None:
        super().__enter__()
        self._mode.enter_context(older_programs())


class DygraphPirGuard:
    """The mode is as outside."""

    def __enter__(self) -> None:
        self._mode = mode(not in_dynamic_mode())
        self._mode.__enter__()

    def __exit__(self, *exc: Any) -> None:
        self._mode.__exit__(*exc)


class DygraphOldIrGuard(DygraphPirGuard):
    """As ``DygraphPirGuard``."""
