"""The report of a profile: one page with a flame graph, the memory over time, and tables."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from oar.profiler.by_layer import OUTSIDE, layer_rows
from oar.profiler.event_types import TracerEventType
from oar.profiler.profiler_statistic import Item, StatisticData
from oar.profiler.result import HostNode, ProfilerResult

__all__ = ["report_data", "write_report"]

_MOST_POINTS = 1500  # of the curve of memory
_LEAST_SHARE = 1e-4  # of the total time that a frame needs to be drawn
_MOST_ROWS = 300

_KINDS = {TracerEventType.Operator: "op", TracerEventType.Kernel: "kernel", TracerEventType.Forward: "layer",
          TracerEventType.PythonOp: "python", TracerEventType.PythonUserDefined: "user"}  # fmt: skip


class Frame:
    """A box of the flame graph: a name, the time of all its calls, and the boxes inside."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self.time = 0.0
        self.calls = 0
        self.children: dict[tuple[str, str], Frame] = {}

    def child(self, name: str, kind: str) -> Frame:
        """The box of this name inside."""
        return self.children.setdefault((name, kind), Frame(name, kind))

    def add(self, time: float) -> None:
        """Add a call."""
        self.time += time
        self.calls += 1

    def as_list(self, least: float) -> list[Any]:
        """[name, kind, microseconds, calls, boxes inside], without boxes that are too small to see."""
        inside = sorted(self.children.values(), key=lambda f: -f.time)
        return [self.name, self.kind, round(self.time / 1e3, 1), self.calls, [f.as_list(least) for f in inside if f.time >= least]]


def _duration(node: HostNode) -> float:
    return node.end_ns - node.start_ns


def _add_tree(frame: Frame, nodes: Iterable[HostNode]) -> None:
    """Boxes for nodes as they contain each other."""
    for node in nodes:
        if node.is_worker:
            continue
        name = "step" if node.type is TracerEventType.ProfileStep else node.name
        inner = frame.child(name, _KINDS.get(node.type, "phase"))
        inner.add(_duration(node))
        _add_tree(inner, node.children_node)


def _phased(root: HostNode) -> Iterator[tuple[HostNode, str]]:
    """Ops that no other op contains, and batches that were loaded, each with its phase."""
    stack = [(root, "")]
    while stack:
        node, phase = stack.pop()
        if node.type is TracerEventType.Dataloader:
            yield node, "loading data"
            continue
        if node.type is TracerEventType.Operator:
            yield node, phase or "forward"
            continue
        if node.type is TracerEventType.Backward:
            phase = "backward"
        elif node.type is TracerEventType.Optimization:
            phase = "optimizer"
        stack += [(child, phase) for child in reversed(node.children_node)]


def _layer_frames(trees: dict[int, HostNode]) -> Frame:
    """Phase, layers from the outermost, op, kernel: the same for calls of Python and for captured programs."""
    whole = Frame("all", "phase")
    for root in trees.values():
        for node, phase in _phased(root):
            frame, time = whole.child(phase, "phase"), _duration(node)
            frame.add(time)
            for part in node.layer.split(".") if node.layer else ():
                frame = frame.child(part, "layer")
                frame.add(time)
            if node.type is TracerEventType.Operator:
                _add_tree(frame, [node])
    whole.time = sum(child.time for child in whole.children.values())
    return whole


def _call_frames(trees: dict[int, HostNode]) -> Frame:
    whole = Frame("all", "phase")
    for root in trees.values():
        _add_tree(whole, root.children_node)
    whole.time = sum(child.time for child in whole.children.values())
    return whole


def _flame(title: str, frame: Frame, elapsed: float) -> dict[str, Any]:
    frame.time = max(frame.time, elapsed)
    frame.calls = 1
    return {"title": title, "root": frame.as_list(frame.time * _LEAST_SHARE)}


def _memory_curve(trees: dict[int, HostNode]) -> list[list[float]]:
    """[milliseconds, bytes in use]. Of many points, the largest and the last of each stretch are kept."""
    points = sorted((m.timestamp_ns, m.current_allocated) for root in trees.values() for node in root.walk() for m in node.mem_node)
    if len(points) > _MOST_POINTS:
        size = -(-len(points) // (_MOST_POINTS // 2))
        kept = []
        for begin in range(0, len(points), size):
            stretch = points[begin : begin + size]
            kept += [max(stretch, key=lambda p: p[1]), stretch[-1]]
        points = sorted(set(kept))
    return [[round(t / 1e6, 4), live] for t, live in points]


def _item_rows(items: dict[str, Item]) -> list[list[Any]]:
    rows = sorted(items.values(), key=lambda i: -i.cpu_time)[:_MOST_ROWS]
    return [[i.name, i.call, i.cpu_time / 1e6, i.avg_cpu_time / 1e3, i.max_cpu_time / 1e3, i.flops] for i in rows]


def _layer_table(trees: dict[int, HostNode]) -> list[list[Any]]:
    return [[r.path, 0 if r.path == OUTSIDE else r.depth, r.calls, r.total_ns / 1e6, r.forward_ns / 1e6, r.backward_ns / 1e6,
             r.total_flops, r.total_allocated_bytes, r.kept_bytes] for r in layer_rows(trees)[:_MOST_ROWS]]  # fmt: skip


def _step_times(trees: dict[int, HostNode]) -> list[float]:
    """Milliseconds of each step that did something: a profiler that stops begins another one before."""
    nodes = [node for root in trees.values() for node in root.walk()]
    calls = sorted(node.start_ns for node in nodes if node.type is TracerEventType.Operator)
    steps = [node for node in nodes if node.type is TracerEventType.ProfileStep]
    # By time: a range of the user may reach over the end of a step, and is then not inside of it.
    return [_duration(s) / 1e6 for s in steps if bisect_left(calls, s.start_ns) < bisect_left(calls, s.end_ns)]


def report_data(result: ProfilerResult) -> dict[str, Any]:
    """What the page shows, as plain values."""
    trees = result.get_data()
    statistics = StatisticData(trees, result.get_extra_info())
    elapsed = max((root.end_ns for root in trees.values()), default=0)
    events, memory = statistics.event_summary, _memory_curve(trees)
    phases = events.model_perspective_items
    flames = [_flame("Layers", _layer_frames(trees), elapsed), _flame("Calls", _call_frames(trees), elapsed)]
    return {
        "elapsed": elapsed / 1e6,
        "steps": _step_times(trees),
        "phases": [[name, item.cpu_time / 1e6, item.call] for name, item in phases.items() if name != "ProfileStep"],
        "ops": _item_rows(events.items),
        "kernels": _item_rows(events.kernel_items),
        "ranges": _item_rows(events.userdefined_items),
        "layers": _layer_table(trees),
        "memory": memory,
        "peak": max((live for _, live in memory), default=0),
        "flames": flames,
        "threads": len(trees),
        "facts": result.get_extra_info(),
    }


def write_report(result: ProfilerResult, path: str) -> None:
    """Write the page. It needs nothing from elsewhere."""
    with open(os.path.join(os.path.dirname(__file__), "report.html"), encoding="utf-8") as file:
        page = file.read()
    # "</script" inside of the data would end it.
    data = json.dumps(report_data(result), separators=(",", ":")).replace("<", "\\u003c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page.replace("/*DATA*/null", data))
