"""Time, memory and arithmetic by layer of the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oar.profiler.event_types import TracerEventType
from oar.profiler.profiler_statistic import walk

__all__ = ["LayerRow", "layer_rows"]

OUTSIDE = "(outside of layers)"


class LayerRow:
    """What one layer did, without the layers below it, and with them.

    ``forward_ns`` and ``backward_ns`` are the time of the layer's own ops; ``total_ns`` adds both, and those of the layers
    below. ``calls`` counts the layer's own ops, ``kept_bytes`` what they allocated less what was freed in the meantime.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls = 0
        self.forward_ns = self.backward_ns = self.total_ns = 0.0
        self.flops = self.total_flops = 0.0
        self.allocated_bytes = self.kept_bytes = self.total_allocated_bytes = 0

    @property
    def own_ns(self) -> float:
        """The time of the layer's own ops."""
        return self.forward_ns + self.backward_ns

    @property
    def depth(self) -> int:
        """How many layers it is inside of."""
        return self.path.count(".")


def outermost_ops(root: Any) -> Iterator[tuple[Any, bool]]:
    """The ops of a thread that no other op contains, each with whether it is part of a backward."""
    stack = [(root, False)]
    while stack:
        node, backward = stack.pop()
        if node.type is TracerEventType.Operator:
            yield node, backward
            continue
        backward = backward or node.type is TracerEventType.Backward
        stack += [(child, backward) for child in reversed(node.children_node)]


def parents_of(path: str) -> Iterator[str]:
    """The path and those of the layers around it, innermost first."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _rows_by_path(trees: dict[Any, Any]) -> dict[str, LayerRow]:
    rows: dict[str, LayerRow] = {}

    def row(path: str) -> LayerRow:
        return rows.setdefault(path, LayerRow(path))

    for root in trees.values():
        for op, backward in outermost_ops(root):
            layer, flops = getattr(op, "layer", ""), getattr(op, "flops", 0)  # a tree from elsewhere has none
            mine, spent = row(layer or OUTSIDE), op.end_ns - op.start_ns
            mine.calls += 1
            mine.flops += flops
            if backward:
                mine.backward_ns += spent
            else:
                mine.forward_ns += spent
            changes = [m.increase_bytes for node in (op, *walk(op)) for m in node.mem_node]
            allocated = sum(change for change in changes if change > 0)
            mine.allocated_bytes += allocated
            mine.kept_bytes += sum(changes)
            for around in parents_of(layer) if layer else (OUTSIDE,):
                outer = row(around)
                outer.total_ns += spent
                outer.total_flops += flops
                outer.total_allocated_bytes += allocated
    return rows


def layer_rows(trees: dict[Any, Any]) -> list[LayerRow]:
    """A row for each layer, the parts of a layer after it, the slowest first; last what no layer called."""
    rows = _rows_by_path(trees)
    children: dict[str, list[LayerRow]] = {}
    for path, one in rows.items():
        if path != OUTSIDE:
            children.setdefault(path.rpartition(".")[0], []).append(one)
    ordered: list[LayerRow] = []

    def add(parent: str) -> None:
        for one in sorted(children.get(parent, ()), key=lambda r: -r.total_ns):
            ordered.append(one)
            add(one.path)

    add("")
    return ordered + ([rows[OUTSIDE]] if OUTSIDE in rows else [])
