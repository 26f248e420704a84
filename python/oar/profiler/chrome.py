"""Traces for chrome://tracing and Perfetto."""

from __future__ import annotations

import json
from typing import Any

from oar.profiler.event_types import TracerEventType
from oar.profiler.result import HostNode, ProfilerResult

__all__ = ["trace_of", "write_trace"]

_CATEGORIES = {TracerEventType.Operator: "op", TracerEventType.Kernel: "kernel", TracerEventType.Forward: "layer",
               TracerEventType.ProfileStep: "step", TracerEventType.PythonOp: "python"}  # fmt: skip


def _row(node: HostNode) -> dict[str, Any]:
    details: dict[str, Any] = {"operands": node.operands} if node.type is TracerEventType.Operator else {}
    if node.layer:
        details["layer"] = node.layer
    if node.flops:
        details["flops"] = node.flops
    return {"name": node.name, "cat": _CATEGORIES.get(node.type, node.type.name.lower()), "ph": "X",
            "ts": node.start_ns / 1e3, "dur": (node.end_ns - node.start_ns) / 1e3, "pid": node.process_id,
            "tid": node.thread_id, "args": details}  # fmt: skip


def _thread_rows(root: HostNode) -> list[dict[str, Any]]:
    works = any(node.is_worker for node in root.walk())
    title = f"thread {root.thread_id}" + (" (pool)" if works else "")
    return [{"name": "thread_name", "ph": "M", "pid": root.process_id, "tid": root.thread_id, "args": {"name": title}}]


def trace_of(result: ProfilerResult) -> dict[str, Any]:
    """The trace as a dict: every event, and a counter for the memory in use."""
    rows: list[dict[str, Any]] = []
    for root in result.get_data().values():
        rows += _thread_rows(root)
        for node in root.walk():
            if node is not root:
                rows.append(_row(node))
            rows += [{"name": "memory", "ph": "C", "ts": m.timestamp_ns / 1e3, "pid": m.process_id,
                      "args": {"bytes in use": m.current_allocated}} for m in node.mem_node]  # fmt: skip
    rows.sort(key=lambda row: row.get("ts", -1))
    return {"traceEvents": rows, "displayTimeUnit": "ms", "otherData": result.get_extra_info()}


def write_trace(result: ProfilerResult, path: str) -> None:
    """Write the trace to a file."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace_of(result), file)
