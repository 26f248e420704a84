"""The tables that ``Profiler.summary`` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oar.profiler.by_layer import OUTSIDE, layer_rows
from oar.profiler.event_types import TracerEventType
from oar.profiler.profiler_statistic import Item, SortedKeys, StatisticData
from oar.profiler.statistic_helper import sum_ranges
from oar.profiler.views import SummaryView

__all__ = ["Tables", "format_bytes", "format_count", "table"]

_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_KEYS: dict[SortedKeys, Callable[[Item], float]] = {
    SortedKeys.CPUTotal: lambda i: -i.cpu_time,
    SortedKeys.CPUAvg: lambda i: -i.avg_cpu_time,
    SortedKeys.CPUMax: lambda i: -i.max_cpu_time,
    SortedKeys.CPUMin: lambda i: i.min_cpu_time,
    SortedKeys.GPUTotal: lambda i: -i.general_gpu_time,
    SortedKeys.GPUAvg: lambda i: -i.avg_general_gpu_time,
    SortedKeys.GPUMax: lambda i: -i.max_general_gpu_time,
    SortedKeys.GPUMin: lambda i: i.min_general_gpu_time,
}


def format_bytes(count: float) -> str:
    """Bytes in a unit that fits: ``1.5 MiB``."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while abs(size) >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.2f} {units[0]}"


def format_count(count: float) -> str:
    """A large number with a letter: ``2.10 G``."""
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if count >= limit:
            return f"{count / limit:.2f} {letter}"
    return f"{count:.0f}"


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[Any] | str], notes: Iterable[str] = ()) -> str:
    """A table as text. The first column is flush left, others flush right; a row that is a string is a heading."""
    cells = [[str(cell) for cell in row] for row in rows if not isinstance(row, str)]
    widths = [max([len(header), *(len(row[i]) for row in cells)]) for i, header in enumerate(headers)]
    headings = [len(row) for row in rows if isinstance(row, str)]
    total = max([sum(widths) + 2 * (len(widths) - 1), *headings, len(title) + 4])

    def line(row: Sequence[str]) -> str:
        return "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()

    rule = "-" * total
    text = [f" {title} ".center(total, "-"), line(list(headers)), rule]
    text += [row if isinstance(row, str) else line([str(cell) for cell in row]) for row in rows]
    return "\n".join([*text, rule, *notes]) + "\n"


class Tables:
    """All tables of one profile."""

    def __init__(self, data: StatisticData, sorted_by: SortedKeys = SortedKeys.CPUTotal, op_detail: bool = True,
                 thread_sep: bool = False, time_unit: str = "ms", row_limit: int = 100, name_width: int = 75) -> None:  # fmt: skip
        if time_unit not in _UNITS:
            raise ValueError(f"[Profiler.summary] time_unit is {time_unit!r}. Pass one of {', '.join(map(repr, _UNITS))}.")
        if not isinstance(sorted_by, SortedKeys):
            raise TypeError(f"[Profiler.summary] sorted_by is {sorted_by!r}. Pass one of SortedKeys, such as SortedKeys.CPUTotal.")
        self.data, self.sorted_by, self.op_detail, self.thread_sep = data, sorted_by, op_detail, thread_sep
        self.unit, self.row_limit, self.name_width = time_unit, row_limit, name_width
        self.total = data.total_time

    def text(self, views: Any = None) -> str:
        """The tables of some views, or of all that have content."""
        makers: dict[SummaryView, Callable[[], str]] = {
            SummaryView.DeviceView: self.device, SummaryView.OverView: self.overview, SummaryView.ModelView: self.model,
            SummaryView.DistributedView: self.distributed, SummaryView.KernelView: self.kernels,
            SummaryView.OperatorView: self.operators, SummaryView.MemoryView: self.memory,
            SummaryView.MemoryManipulationView: self.memory_manipulation, SummaryView.UDFView: self.user_defined,
            SummaryView.LayerView: self.layers,
        }  # fmt: skip
        wanted = list(makers) if views is None else [views] if isinstance(views, SummaryView) else list(views)
        for view in wanted:
            if view not in makers:
                raise ValueError(f"[Profiler.summary] views has {view!r}. Pass members of SummaryView, or None for all.")
        parts = [makers[view]() for view in wanted]
        return "\n".join(part for part in parts if part)

    # numbers -------------------------------------------------------------------------------------

    def time(self, nanoseconds: float) -> str:
        """A time in the unit of the tables."""
        return "-" if nanoseconds == float("inf") else f"{nanoseconds / _UNITS[self.unit]:.2f}"

    def ratio(self, nanoseconds: float) -> str:
        """A share of the total time in percent."""
        return f"{100 * nanoseconds / self.total:.2f}" if self.total else "-"

    def name(self, text: str) -> str:
        """A name that is not too long."""
        return text if len(text) <= self.name_width else text[: self.name_width - 3] + "..."

    def _ordered(self, items: dict[str, Item]) -> list[Item]:
        return sorted(items.values(), key=_KEYS[self.sorted_by])

    def _times(self, item: Item, whole: float) -> list[str]:
        share = f"{100 * item.cpu_time / whole:.2f}" if whole else "-"
        return [self.time(t) for t in (item.cpu_time, item.avg_cpu_time, item.max_cpu_time, item.min_cpu_time)] + [share]

    def _time_headers(self) -> list[str]:
        return [f"Total ({self.unit})", "Avg", "Max", "Min", "Ratio (%)"]

    def _cut(self, rows: list, notes: list[str]) -> list:
        if len(rows) > self.row_limit:
            notes.append(f"{len(rows) - self.row_limit} more rows are not shown.")
        return rows[: self.row_limit]

    # views ---------------------------------------------------------------------------------------

    def device(self) -> str:
        """How busy the processors were."""
        info = self.data.extra_info
        rows = [[f"CPU({who})", f"{100 * float(info[key]):.2f}"] for who, key in
                (("Process", "Process Cpu Utilization"), ("System", "System Cpu Utilization")) if key in info]  # fmt: skip
        times = self.data.time_range_summary
        for device in times.get_gpu_devices():
            rows.append([f"GPU{device}", self.ratio(times.get_gpu_range_sum(device, TracerEventType.Kernel))])
        notes = ["CPU(Process) is the time of this process on all processors by the elapsed time: two busy threads are 200 %.",
                 "CPU(System) is the share of time in which processors were not idle, for all processes."]  # fmt: skip
        if int(info.get("Dropped Events", 0)):
            notes.append(f"{info['Dropped Events']} events were dropped. The flag profile_events sets how many are kept.")
        return table("Device Summary", ["Device", "Utilization (%)"], rows, notes)

    def overview(self) -> str:
        """Time by type of event."""
        times, phases = self.data.time_range_summary, self.data.event_summary.model_perspective_items
        spent = {kind: (times.call_times[kind], nanoseconds) for kind, nanoseconds in times.CPUTimeRangeSum.items()}
        for kind in spent:
            if kind.name in phases:
                spent[kind] = (phases[kind.name].call, phases[kind.name].cpu_time)
        rows = [[kind.name, calls, self.time(t), self.ratio(t)] for kind, (calls, t) in
                sorted(spent.items(), key=lambda pair: -pair[1][1])]  # fmt: skip
        notes = ["Events of one type that overlap count once. Types contain each other: the sum is not 100 %."]
        return table("Overview Summary", ["Event Type", "Calls", f"CPU Time ({self.unit})", "Ratio (%)"], rows, notes)

    def model(self) -> str:
        """Time by phase of training."""
        items = self.data.event_summary.model_perspective_items
        if len(items) < 2 and "ProfileStep" not in items:
            return ""
        rows, named = [], 0.0
        for name in ("ProfileStep", "Dataloader", "Forward", "Backward", "Optimization"):
            if name in items:
                rows.append([name if name == "ProfileStep" else f"  {name}", items[name].call, *self._times(items[name], self.total)])
                named += 0 if name == "ProfileStep" else items[name].cpu_time
        other = self.total - named
        rows.append(["  Others", "-", self.time(other), "-", "-", "-", self.ratio(other)])
        return table("Model Summary", ["Name", "Calls", *self._time_headers()], rows)

    def distributed(self) -> str:
        """Time of communication and computation."""
        summary = self.data.distributed_summary
        if not summary.communication_range:
            return ""
        parts = {"ProfileStep": self.total, "  Communication": sum_ranges(summary.communication_range),
                 "  Computation": sum_ranges(summary.computation_range), "  Overlap": sum_ranges(summary.overlap_range)}  # fmt: skip
        rows = [[name, self.time(t), self.ratio(t)] for name, t in parts.items()]
        return table("Distribution Summary", ["Name", f"Total ({self.unit})", "Ratio (%)"], rows)

    def kernels(self) -> str:
        """Time by kernel."""
        items = self.data.event_summary.kernel_items
        if not items:
            return ""
        on_device = any(item.gpu_time for item in items.values())
        whole = sum(item.gpu_time or item.cpu_time for item in items.values())
        rows, notes = [], []
        for item in sorted(items.values(), key=lambda i: -(i.gpu_time or i.cpu_time)):
            spent = item.gpu_time or item.cpu_time
            longest = item.max_gpu_time or item.max_cpu_time
            least = min(item.min_gpu_time if on_device else item.min_cpu_time, longest)
            share = f"{100 * spent / whole:.2f}" if whole else "-"
            rows.append([self.name(item.name), item.call, *map(self.time, (spent, spent / item.call, longest, least)), share])
        return table("Kernel Summary", ["Name", "Calls", *self._time_headers()], self._cut(rows, notes), notes)

    def operators(self) -> str:
        """Time by op, with the kernels that computed it."""
        summary, parts = self.data.event_summary, []
        groups = {f"Thread: {k}": v for k, v in summary.thread_items.items()} if self.thread_sep else {"Thread: All threads merged": summary.items}
        for heading, items in groups.items():
            if not items:
                continue
            whole = sum(item.self_cpu_time + sum(i.cpu_time for i in item.operator_inners.values()) for item in items.values())
            counts = any(item.flops for item in items.values())
            rows: list[list[Any]] = []
            for item in self._ordered(items):
                extra = [format_count(item.flops)] if counts else []
                rows.append([self.name(item.name), item.call, *self._times(item, whole), *extra])
                inners = self._ordered(item.operator_inners) if self.op_detail else []
                for inner in inners:
                    rows.append([self.name(f"  {inner.name}"), inner.call, *self._times(inner, item.cpu_time), *([""] if counts else [])])
            notes = ["The time of an op contains that of the ops it consists of."]
            headers = ["Name", "Calls", *self._time_headers(), *(["FLOPs"] if counts else [])]
            parts.append(table("Operator Summary", headers, [heading, *self._cut(rows, notes)], notes))
        return "\n".join(parts)

    def memory(self) -> str:
        """Memory by op."""
        summary, parts = self.data.memory_summary, []
        for kind, by_place, peaks in (("Allocated", summary.allocated_items, summary.peak_allocation_values),
                                      ("Reserved", summary.reserved_items, summary.peak_reserved_values)):  # fmt: skip
            for place, items in by_place.items():
                rows = [[self.name(i.event_name), i.allocation_count, i.free_count, format_bytes(i.allocation_size),
                         format_bytes(i.free_size), format_bytes(i.increase_size)]
                        for i in sorted(items.values(), key=lambda i: -i.allocation_size)]  # fmt: skip
                notes = [f"The peak of memory in use was {format_bytes(peaks[place])}."]
                headers = ["Name", "Allocations", "Frees", "Allocated", "Freed", "Increase"]
                parts.append(table(f"{kind} Memory Summary of {place}", headers, self._cut(rows, notes), notes))
        return "\n".join(parts)

    def memory_manipulation(self) -> str:
        """Time of copies and fills of memory."""
        return self._general("Memory Manipulation Summary", self.data.event_summary.memory_manipulation_items)

    def user_defined(self) -> str:
        """Time of the ranges that users recorded."""
        summary = self.data.event_summary
        if not self.thread_sep:
            return self._general("UserDefined Summary", summary.userdefined_items)
        parts = [self._general(f"UserDefined Summary of thread {thread}", items)
                 for thread, items in summary.userdefined_thread_items.items()]  # fmt: skip
        return "\n".join(parts)

    def _general(self, title: str, items: dict[str, Item]) -> str:
        if not items:
            return ""
        notes: list[str] = []
        rows = [[self.name(item.name), item.call, *self._times(item, self.total)] for item in self._ordered(items)]
        return table(title, ["Name", "Calls", *self._time_headers()], self._cut(rows, notes), notes)

    def layers(self) -> str:
        """Time, memory and arithmetic by layer."""
        found = layer_rows(self.data.node_trees)
        if all(row.path == OUTSIDE for row in found):
            return ""
        counts, memory = any(row.flops for row in found), any(row.total_allocated_bytes for row in found)
        rows, notes = [], ["Total contains the layers inside; forward and backward are the ops of the layer itself."]
        for row in found:
            cells = ["  " * row.depth + self.name(row.path if row.depth == 0 else row.path.rpartition(".")[2]), row.calls,
                     self.time(row.total_ns), self.time(row.forward_ns), self.time(row.backward_ns), self.ratio(row.total_ns)]  # fmt: skip
            cells += [format_count(row.total_flops)] if counts else []
            cells += [format_bytes(row.total_allocated_bytes), format_bytes(row.kept_bytes)] if memory else []
            rows.append(cells)
        headers = ["Layer", "Ops", f"Total ({self.unit})", "Forward", "Backward", "Ratio (%)", *(["FLOPs"] if counts else []),
                   *(["Allocated", "Kept"] if memory else [])]  # fmt: skip
        return table("Layer Summary", headers, self._cut(rows, notes), notes)
