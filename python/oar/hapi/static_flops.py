"""The table of ``flops``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Table"]


class Table:
    """Rows of text in a frame.

    Args:
        table_heads: the titles of the columns.

    Examples:
        >>> from oar.hapi.static_flops import Table
        >>> table = Table(['Layer', 'Flops'])
        >>> table.add_row(['linear_0', 12])
        >>> table.print_table()
        +----------+-------+
        |  Layer   | Flops |
        +----------+-------+
        | linear_0 |  12   |
        +----------+-------+
    """

    def __init__(self, table_heads: Sequence[str]) -> None:
        self.table_heads = table_heads
        self.col_num = len(table_heads)
        self.data: list[list[Any]] = []

    def add_row(self, row_str: list[Any]) -> None:
        """Adds a row with a value for each column."""
        if len(row_str) != self.col_num:
            raise ValueError(f"[Table] a row should have {self.col_num} values, but {row_str} has {len(row_str)}.")
        self.data.append(row_str)

    def print_table(self) -> None:
        """Prints the table."""
        rows = [[str(value) for value in row] for row in (self.table_heads, *self.data)]
        widths = [max(map(len, column)) + 2 for column in zip(*rows)]
        frame = "+" + "+".join("-" * width for width in widths) + "+"
        lines = ["|" + "|".join(value.center(width) for value, width in zip(row, widths)) + "|" for row in rows]
        print("\n".join([frame, lines[0], frame, *lines[1:], frame]))
