"""How a tensor is shown: as Paddle shows it."""

from __future__ import annotations

import math

from oar._framework import print_options


def _number(value, precision: int, scientific) -> str:
    if isinstance(value, complex):
        sign = "-" if math.copysign(1, value.imag) < 0 else "+"
        return f"({_number(value.real, precision, scientific)}{sign}{_number(abs(value.imag), precision, scientific)}j)"
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return str(value)
    if scientific:
        return f"{value:.{precision}e}"
    if value == math.floor(value):
        return f"{value:.0f}."
    return f"{value:.{precision}f}"


def _edges(rows, summary: bool, edge: int) -> list:
    """The rows to show, with None where some are left out."""
    n = len(rows)
    if not summary or n <= 2 * edge:
        return list(rows)
    return [*rows[:edge], None, *rows[n - edge:]]


class _Layout:
    def __init__(self, values, options: dict):
        self.precision, self.scientific = options["precision"], options["sci_mode"]
        self.edge, self.line = options["edgeitems"], options["linewidth"]
        self.summary = values.size > options["threshold"]
        shown = self._shown(values)
        self.signed = values.dtype.kind in "if" and any(v < 0 for v in shown)
        self.width = max((len(self.text(v)) for v in shown), default=0)

    def text(self, value) -> str:
        return _number(value, self.precision, self.scientific)

    def _shown(self, values) -> list:
        if values.ndim == 0:
            return [values.item()]
        if values.ndim == 1:
            return [v for v in _edges(values.tolist(), self.summary, self.edge) if v is not None]
        return [v for row in _edges(values, self.summary, self.edge) if row is not None for v in self._shown(row)]

    def item(self, value) -> str:
        text = self.text(value)
        if self.signed and not value < 0:
            text = " " + text
        return text.ljust(self.width)

    def body(self, values, indent: int) -> str:
        if values.ndim == 0:
            return self.text(values.item())
        if values.ndim == 1:
            items = ["..." if v is None else self.item(v) for v in _edges(values.tolist(), self.summary, self.edge)]
            per_line = max(1, (self.line - indent) // (self.width + 2))
            lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
            return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
        rows = ["..." if row is None else self.body(row, indent + 1)
                for row in _edges(values, self.summary, self.edge)]
        return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def body(values, indent: int) -> str:
    """The elements of an array in brackets, aligned, each line after ``indent`` spaces."""
    return _Layout(values, print_options).body(values, indent)
