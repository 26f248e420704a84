"""What a profile has recorded: flat events, and the tree of each thread."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from oar.profiler.event_types import TracerEventType, TracerMemEventType

__all__ = ["Event", "HostNode", "MemoryNode", "ProfilerResult", "build_trees"]

# Kinds of native events (timeline::Kind).
OP, KERNEL, RANGE, WORK, MEMORY = range(5)
PLACE = "Place(cpu)"


class Event(NamedTuple):
    """One native event. Times are nanoseconds since the start."""

    kind: int
    name: str
    begin: int
    end: int
    thread: int
    depth: int  # calls of ops that it is inside of
    operands: str
    layer: str
    range_type: int
    bytes: int  # of memory: the change
    live: int  # of memory: bytes in use after it
    flops: float


class MemoryNode:
    """An allocation, or memory that was freed."""

    def __init__(self, event: Event, peak: int, process: int) -> None:
        self.timestamp_ns = event.begin
        self.addr = 0
        self.type = TracerMemEventType.Allocate if event.bytes >= 0 else TracerMemEventType.Free
        self.process_id, self.thread_id = process, event.thread
        self.increase_bytes = event.bytes
        self.place = PLACE
        self.current_allocated = event.live
        self.current_reserved = 0
        self.peak_allocated = peak
        self.peak_reserved = 0


class HostNode:
    """An event with those that happened inside it."""

    def __init__(self, name: str, type: TracerEventType, start_ns: float, end_ns: float, process_id: int,
                 thread_id: int) -> None:  # fmt: skip
        self.name, self.type = name, type
        self.start_ns, self.end_ns = start_ns, end_ns
        self.process_id, self.thread_id = process_id, thread_id
        self.children_node: list[HostNode] = []
        self.runtime_node: list[Any] = []
        self.device_node: list[Any] = []
        self.mem_node: list[MemoryNode] = []
        self.layer = ""
        self.operands = ""
        self.flops = 0.0
        self.is_worker = False  # the part of a kernel that a thread of the pool did

    def walk(self) -> Iterator[HostNode]:
        """This node and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children_node))


def type_of(event: Event) -> TracerEventType:
    """The type of the node of an event."""
    if event.kind == OP:
        return TracerEventType.Operator
    if event.kind in (KERNEL, WORK):
        return TracerEventType.Kernel
    return TracerEventType(event.range_type)


def _node_of(event: Event, process: int) -> HostNode:
    node = HostNode(event.name, type_of(event), event.begin, event.end, process, event.thread)
    node.layer, node.operands, node.flops = event.layer, event.operands, event.flops
    node.is_worker = event.kind == WORK
    return node


def _tree_of(events: list[Event], peaks: dict[int, int], process: int, thread: int) -> HostNode:
    """The tree of the events of one thread: what begins later and ends earlier is inside."""
    root = HostNode("Root", TracerEventType.UserDefined, 0, max((e.end for e in events), default=0), process, thread)
    open_nodes = [root]
    # At equal times the event that ended later contains the other; they were recorded in the order in which they ended.
    order = sorted(range(len(events)), key=lambda i: (events[i].begin, -events[i].end, events[i].kind == MEMORY, -i))
    for i in order:
        event = events[i]
        while len(open_nodes) > 1 and (event.begin > open_nodes[-1].end_ns or event.end > open_nodes[-1].end_ns):
            open_nodes.pop()
        if event.kind == MEMORY:
            open_nodes[-1].mem_node.append(MemoryNode(event, peaks[id(event)], process))
            continue
        node = _node_of(event, process)
        open_nodes[-1].children_node.append(node)
        open_nodes.append(node)
    return root


def build_trees(events: list[Event]) -> dict[int, HostNode]:
    """A tree for each thread, by its number."""
    process = os.getpid()
    peaks, peak = {}, 0
    for event in sorted((e for e in events if e.kind == MEMORY), key=lambda e: e.begin):
        peak = max(peak, event.live)
        peaks[id(event)] = peak
    by_thread: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        by_thread[event.thread].append(event)
    return {thread: _tree_of(rows, peaks, process, thread) for thread, rows in sorted(by_thread.items())}


class ProfilerResult:
    """What one recording has found.

    ``get_data()`` returns the trees by thread, ``get_extra_info()`` a dict of facts, ``save(path, format)`` writes a file.
    """

    def __init__(self, events: list[Event], trees: dict[int, HostNode] | None = None,
                 extra_info: dict[str, str] | None = None) -> None:  # fmt: skip
        self.events = events
        self.extra_info = dict(extra_info or {})
        self._trees = trees

    def get_data(self) -> dict[int, HostNode]:
        """The trees of events, by thread."""
        if self._trees is None:
            self._trees = build_trees(self.events)
        return self._trees

    def get_extra_info(self) -> dict[str, str]:
        """Facts by name: how busy the processors were, how many events were dropped."""
        return self.extra_info

    @property
    def dropped(self) -> int:
        """Events that were not kept, because there were too many."""
        return int(self.extra_info.get("Dropped Events", 0))

    def save(self, path: str, format: str = "json") -> None:
        """Write a file: ``json`` for trace viewers, ``pb`` for ``load_profiler_result``, ``html`` for a browser."""
        if format == "json":
            from oar.profiler.chrome import write_trace as write
        elif format == "pb":
            from oar.profiler.nodetree import write_tree as write
        elif format == "html":
            from oar.profiler.report import write_report as write
        else:
            raise ValueError(
                f"[Profiler.export] format is {format!r}. Pass 'json' for trace viewers, 'pb' for load_profiler_result or "
                "'html' for a report."
            )
        folder = os.path.dirname(os.path.abspath(path))
        os.makedirs(folder, exist_ok=True)
        write(self, path)
