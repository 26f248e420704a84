"""How many calls of a program are in which dtype."""

from __future__ import annotations

from typing import Any

import oar
from oar.framework.parameter import dtype_name

__all__ = ["OperatorStatsUnit", "collect_operator_stats"]


class OperatorStatsUnit:
    """The calls of one op by dtype.

    Examples:
        >>> import oar
        >>> unit = oar.static.amp.debugging.OperatorStatsUnit()
        >>> unit.update(oar.float16)
        >>> unit.convert_to_list()
        [1, 0, 0, 0]
    """

    def __init__(self) -> None:
        self.fp32_calls = self.fp16_calls = self.bf16_calls = self.other_calls = 0

    def update(self, dtype: Any) -> None:
        """Count a call; None for one without tensors."""
        name = None if dtype is None else dtype_name(dtype)
        column = {"float32": "fp32_calls", "float16": "fp16_calls", "bfloat16": "bf16_calls"}.get(name or "", "other_calls")
        setattr(self, column, getattr(self, column) + 1)

    def addto(self, another: OperatorStatsUnit) -> None:
        """Add the calls of another one."""
        for column in vars(self):
            setattr(self, column, getattr(self, column) + getattr(another, column))

    def convert_to_list(self) -> list[int]:
        """The calls in float16, bfloat16, float32 and other dtypes."""
        return [self.fp16_calls, self.bf16_calls, self.fp32_calls, self.other_calls]


def _get_op_stats_list(program: Any) -> list[dict[str, OperatorStatsUnit]]:
    """For each block the calls of its ops, by Paddle's names."""
    from oar.amp._names import older_name

    found = []
    for block in program.blocks:
        units: dict[str, OperatorStatsUnit] = {}
        for op, dtype in zip(block.ops, program._builder.result_dtypes()):
            units.setdefault(older_name(op._op), OperatorStatsUnit()).update(dtype)
        found.append(units)
    return found


def collect_operator_stats(program: Any = None, print_subblocks: bool = False) -> None:
    """Print how many calls of a program are in float16, bfloat16, float32 and other dtypes, by op.

    Args:
        program: the program; None is the default main program.
        print_subblocks: accepted for compatibility: branches and loops are calls of their own.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [2, 2])
        ...     with oar.amp.auto_cast(dtype='bfloat16'):
        ...         y = x @ x
        ...
        >>> oar.static.amp.debugging.collect_operator_stats(main)  # doctest: +ELLIPSIS
        <-...
          cast                                    |  0                |  2                |  0                |  0
          matmul_v2                               |  0                |  1                |  0                |  0
        <-...
        <BLANKLINE>
        >>> oar.disable_static()
    """
    from oar.amp.debugging import _print_operator_stats

    program = oar.static.default_main_program() if program is None else program
    merged: dict[str, OperatorStatsUnit] = {}
    for units in _get_op_stats_list(program):
        for name, unit in units.items():
            merged.setdefault(name, OperatorStatsUnit()).addto(unit)
    print(f"<{' op list of all blocks ':-^120}>")
    _print_operator_stats({name: unit.convert_to_list() for name, unit in merged.items()})
