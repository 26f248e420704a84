"""``decorate_bf16``: an optimizer that trains a program in bfloat16."""

from __future__ import annotations

from typing import Any

from oar.static.amp.bf16.amp_lists import AutoMixedPrecisionListsBF16
from oar.static.amp.decorator import OptimizerWithMixedPrecision

__all__ = ["OptimizerWithMixedPrecision", "decorate_bf16"]


def decorate_bf16(optimizer: Any, amp_lists: Any = None, use_pure_bf16: bool = False,
                  use_bf16_guard: bool | None = None) -> OptimizerWithMixedPrecision:
    """An optimizer that trains a program in bfloat16. The loss is not scaled.

    Args:
        optimizer: the optimizer.
        amp_lists: ``AutoMixedPrecisionListsBF16``; None has the default ones.
        use_pure_bf16: level O2 instead of O1.
        use_bf16_guard: only calls inside ``bf16_guard`` are cast; None: with ``use_pure_bf16``.

    Returns:
        an ``OptimizerWithMixedPrecision``.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [4, 3])
        ...     loss = oar.nn.Linear(3, 1)(x).mean()
        ...     _ = oar.static.amp.bf16.decorate_bf16(oar.optimizer.SGD(0.1)).minimize(loss)
        ...
        >>> oar.disable_static()
    """
    lists = AutoMixedPrecisionListsBF16() if amp_lists is None else amp_lists
    guard = use_pure_bf16 if use_bf16_guard is None else use_bf16_guard
    level = "O2" if use_pure_bf16 else "O1"
    return OptimizerWithMixedPrecision(optimizer, lists, level, "bfloat16", 1.0, False, 1000, 2, 2.0, 0.8, guard)
