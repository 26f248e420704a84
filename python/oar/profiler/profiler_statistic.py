"""Statistics of a profile: time by type, by op, by kernel, by phase of training; memory by op."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import Any

from oar.profiler.event_types import TracerEventType, TracerMemEventType
from oar.profiler.statistic_helper import intersection_ranges, merge_ranges, merge_self_ranges, sum_ranges

__all__ = ["DistributedSummary", "EventSummary", "MemorySummary", "SortedKeys", "StatisticData", "TimeRangeSummary"]

_PHASES = (TracerEventType.Dataloader, TracerEventType.Forward, TracerEventType.Backward, TracerEventType.Optimization)
_COMMUNICATION_OP = re.compile(r"(c_)?(all_?reduce|broadcast|rpc)(_(sum|max|min|prod|avg))?")
_COMMUNICATION_KERNELS = ("nccl", "xccl")
_MOVES_MEMORY = ("memcpy", "memorycopy", "memset")


class SortedKeys(Enum):
    """How the rows of ``Profiler.summary`` are sorted. Oar computes on the CPU, so times of a GPU are zero.

    Examples:
        >>> import oar
        >>> oar.profiler.SortedKeys.CPUAvg.value
        1
    """

    CPUTotal = 0
    CPUAvg = 1
    CPUMax = 2
    CPUMin = 3
    GPUTotal = 4
    GPUAvg = 5
    GPUMax = 6
    GPUMin = 7


def walk(root: Any) -> Iterator[Any]:
    """The nodes below a root."""
    stack = list(reversed(root.children_node))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children_node))


def device_nodes_of(node: Any) -> Iterator[Any]:
    """The events of devices that were started in a node or below it."""
    for one in (node, *walk(node)):
        for runtime in one.runtime_node:
            yield from runtime.device_node


class HostStatisticNode:
    """A node with its times: on the CPU, on devices, and without what is inside."""

    cpu_time: float
    gpu_time: float
    general_gpu_time: float
    flops: float

    def __init__(self, hostnode: Any) -> None:
        self.hostnode = hostnode
        self.children_node = [HostStatisticNode(child) for child in hostnode.children_node]
        self.runtime_node = hostnode.runtime_node
        self.cpu_time = hostnode.end_ns - hostnode.start_ns
        self.self_cpu_time = self.cpu_time - sum(child.cpu_time for child in self.children_node)
        self.self_cpu_time -= sum(r.end_ns - r.start_ns for r in self.runtime_node)
        own = [device for runtime in self.runtime_node for device in runtime.device_node]
        own += getattr(hostnode, "device_node", [])
        self.self_gpu_time = sum(d.end_ns - d.start_ns for d in own if d.type is TracerEventType.Kernel)
        self.self_general_gpu_time = sum(d.end_ns - d.start_ns for d in own)
        self.gpu_time = self.self_gpu_time + sum(child.gpu_time for child in self.children_node)
        self.general_gpu_time = self.self_general_gpu_time + sum(c.general_gpu_time for c in self.children_node)
        own_flops = getattr(hostnode, "flops", 0)
        self.flops = own_flops or sum(child.flops for child in self.children_node)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.hostnode, name)


class TimeRangeSummary:
    """For each type of event, the time during which any such event ran."""

    def __init__(self) -> None:
        self.CPUTimeRange: dict[TracerEventType, list] = defaultdict(list)
        self.GPUTimeRange: dict[int, dict[TracerEventType, list]] = defaultdict(lambda: defaultdict(list))
        self.CPUTimeRangeSum: dict[TracerEventType, float] = defaultdict(int)
        self.GPUTimeRangeSum: dict[int, dict[TracerEventType, float]] = defaultdict(lambda: defaultdict(int))
        self.call_times: dict[TracerEventType, int] = defaultdict(int)

    def parse(self, nodetrees: dict[Any, Any]) -> None:
        """Add the events of all threads."""
        for root in nodetrees.values():
            for node in walk(root):
                self._add_host(node)
                for runtime in node.runtime_node:
                    self._add_host(runtime)
                    for device in runtime.device_node:
                        self.GPUTimeRange[device.device_id][device.type].append((device.start_ns, device.end_ns))
                        self.call_times[device.type] += 1
        for event_type, ranges in self.CPUTimeRange.items():
            self.CPUTimeRange[event_type] = merge_self_ranges(ranges)
            self.CPUTimeRangeSum[event_type] = sum_ranges(self.CPUTimeRange[event_type])
        for device_id, by_type in self.GPUTimeRange.items():
            for event_type, ranges in by_type.items():
                by_type[event_type] = merge_self_ranges(ranges)
                self.GPUTimeRangeSum[device_id][event_type] = sum_ranges(by_type[event_type])

    def _add_host(self, node: Any) -> None:
        self.CPUTimeRange[node.type].append((node.start_ns, node.end_ns))
        self.call_times[node.type] += 1

    def get_gpu_devices(self) -> Any:
        """The numbers of devices with events."""
        return self.GPUTimeRange.keys()

    def get_gpu_range_sum(self, device_id: int, event_type: TracerEventType) -> float:
        """Nanoseconds during which a device ran events of a type."""
        return self.GPUTimeRangeSum[device_id][event_type]

    def get_cpu_range_sum(self, event_type: TracerEventType) -> float:
        """Nanoseconds during which the CPU ran events of a type."""
        return self.CPUTimeRangeSum[event_type]


class DistributedSummary:
    """The time of communication and of computation, and how much they overlap."""

    def __init__(self) -> None:
        self.cpu_communication_range: list = []
        self.gpu_communication_range: list = []
        self.communication_range: list = []
        self.computation_range: list = []
        self.overlap_range: list = []
        self.cpu_calls = self.gpu_calls = 0

    def parse(self, nodetrees: dict[Any, Any]) -> None:
        """Add the events of all threads."""
        for root in nodetrees.values():
            for node in walk(root):
                self._add(node)
        self.cpu_calls = len(set(self.cpu_communication_range))
        self.gpu_calls = len(set(self.gpu_communication_range))
        self.cpu_communication_range = merge_self_ranges(self.cpu_communication_range)
        self.gpu_communication_range = merge_self_ranges(self.gpu_communication_range)
        self.communication_range = merge_ranges(self.cpu_communication_range, self.gpu_communication_range)
        self.computation_range = merge_self_ranges(self.computation_range)
        self.overlap_range = intersection_ranges(self.communication_range, self.computation_range, is_sorted=True)

    def _add(self, node: Any) -> None:
        name = node.name.lower()
        communicates = node.type is TracerEventType.Communication or (
            node.type is TracerEventType.Operator and _COMMUNICATION_OP.fullmatch(name) is not None
        )
        if communicates:
            self.cpu_communication_range.append((node.start_ns, node.end_ns))
            kernels = [d for d in device_nodes_of(node) if d.type is TracerEventType.Kernel]
            self.gpu_communication_range += [(d.start_ns, d.end_ns) for d in kernels]
            return
        for runtime in node.runtime_node:
            for device in runtime.device_node:
                if device.type is not TracerEventType.Kernel:
                    continue
                is_exchange = any(word in device.name.lower() for word in _COMMUNICATION_KERNELS)
                target = self.gpu_communication_range if is_exchange else self.computation_range
                target.append((device.start_ns, device.end_ns))


class Item:
    """The calls of one name: how many, and how long they took."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.call = 0
        self.flops = 0.0
        self.cpu_time = self.gpu_time = self.general_gpu_time = self.self_cpu_time = 0.0
        self.max_cpu_time = self.max_gpu_time = self.max_general_gpu_time = 0.0
        self.min_cpu_time = self.min_gpu_time = self.min_general_gpu_time = float("inf")
        self.devices: dict[str, Item] = {}
        self.operator_inners: dict[str, Item] = {}

    @property
    def avg_cpu_time(self) -> float:
        """Nanoseconds of a call."""
        return self.cpu_time / self.call

    @property
    def avg_gpu_time(self) -> float:
        """Nanoseconds of the kernels of a call."""
        return self.gpu_time / self.call

    @property
    def avg_general_gpu_time(self) -> float:
        """Nanoseconds of all that a call did on devices."""
        return self.general_gpu_time / self.call

    def _add(self, what: str, time: float) -> None:
        own = self.__dict__
        own[what] += time
        own[f"max_{what}"] = max(own[f"max_{what}"], time)
        own[f"min_{what}"] = min(own[f"min_{what}"], time)

    def add_device(self, node: Any) -> None:
        """Add an event of a device."""
        self.call += 1
        self._add("gpu_time", node.end_ns - node.start_ns)

    def add_item(self, node: Any, inside: bool = False) -> None:
        """Add an event, and with ``inside`` what it consists of."""
        self.call += 1
        self._add("cpu_time", node.cpu_time)
        self._add("gpu_time", node.gpu_time)
        self._add("general_gpu_time", node.general_gpu_time)
        self.self_cpu_time += node.self_cpu_time
        self.flops += node.flops
        if not inside:
            return
        for child in node.children_node:
            if child.type is not TracerEventType.Operator:
                _item(self.operator_inners, child.name).add_item(child, True)
        for runtime in node.runtime_node:
            for device in runtime.device_node:
                _item(self.devices, device.name).add_device(device)


def _item(items: dict[str, Item], name: str) -> Item:
    return items.setdefault(name, Item(name))


class EventSummary:
    """Time by op, by user's range, by kernel, by phase of training."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.thread_items: dict[Any, dict[str, Item]] = defaultdict(dict)
        self.userdefined_items: dict[str, Item] = {}
        self.userdefined_thread_items: dict[Any, dict[str, Item]] = defaultdict(dict)
        self.model_perspective_items: dict[str, Item] = {}
        self.memory_manipulation_items: dict[str, Item] = {}
        self.kernel_items: dict[str, Item] = {}

    def parse(self, nodetrees: dict[Any, Any]) -> None:
        """Add the events of all threads."""
        for root in nodetrees.values():
            tree = HostStatisticNode(root)
            for node in walk(tree):
                self._add(node)
            for device in device_nodes_of(root):
                if device.type is TracerEventType.Kernel:
                    _item(self.kernel_items, device.name).add_device(device)
            self._add_phases(tree)

    def _add(self, node: Any) -> None:
        if node.type is TracerEventType.Operator:
            _item(self.items, node.name).add_item(node, True)
            _item(self.thread_items[node.thread_id], node.name).add_item(node, True)
        elif node.type is TracerEventType.Kernel:
            if not node.is_worker:  # the kernel's own time contains it
                _item(self.kernel_items, node.name).add_item(node)
        elif node.type in (TracerEventType.UserDefined, TracerEventType.PythonUserDefined):
            if any(word in node.name.lower() for word in _MOVES_MEMORY):
                _item(self.memory_manipulation_items, node.name).add_item(node)
            elif node.type is TracerEventType.PythonUserDefined:
                _item(self.userdefined_items, node.name).add_item(node)
                _item(self.userdefined_thread_items[node.thread_id], node.name).add_item(node)

    def _add_phases(self, node: Any) -> None:
        """Of events of a phase that are inside each other, the outermost counts."""
        for child in node.children_node:
            if child.type in _PHASES:
                _item(self.model_perspective_items, child.type.name).add_item(child)
                continue
            if child.type is TracerEventType.ProfileStep:
                _item(self.model_perspective_items, "ProfileStep").add_item(child)
            self._add_phases(child)


class MemoryItem:
    """What the events of one name allocated and freed."""

    def __init__(self, event_name: str, place: str, memory_type: str = "Allocated") -> None:
        self.event_name, self.place, self.memory_type = event_name, place, memory_type
        self.allocation_count = self.free_count = 0
        self.allocation_size = self.free_size = self.increase_size = 0

    def add_memory_record(self, size: int, allocation_type: TracerMemEventType) -> None:
        """Add an event; ``size`` is negative for memory that is freed."""
        if allocation_type in (TracerMemEventType.Allocate, TracerMemEventType.ReservedAllocate):
            self.allocation_count += 1
            self.allocation_size += size
        else:
            self.free_count += 1
            self.free_size -= size
        self.increase_size = self.allocation_size - self.free_size


class MemorySummary:
    """Memory by the op that took or freed it, for each place."""

    def __init__(self) -> None:
        self.allocated_items: dict[str, dict[str, MemoryItem]] = defaultdict(dict)
        self.reserved_items: dict[str, dict[str, MemoryItem]] = defaultdict(dict)
        self.peak_allocation_values: dict[str, int] = defaultdict(int)
        self.peak_reserved_values: dict[str, int] = defaultdict(int)

    def parse(self, nodetrees: dict[Any, Any]) -> None:
        """Add the events of all threads."""
        for root in nodetrees.values():
            self._add(root, "outside of ops")

    def _add(self, root: Any, name: str) -> None:
        stack = [(root, name)]
        while stack:
            node, owner = stack.pop()
            for memory in node.mem_node:
                self._add_record(owner, memory)
            for child in node.children_node:
                inner = child.type in (TracerEventType.OperatorInner, TracerEventType.Kernel)
                works = getattr(child, "is_worker", False)  # it has the name of its op
                stack.append((child, owner if inner and not works else child.name))

    def _add_record(self, name: str, memory: Any) -> None:
        reserved = memory.type in (TracerMemEventType.ReservedAllocate, TracerMemEventType.ReservedFree)
        items = (self.reserved_items if reserved else self.allocated_items)[memory.place]
        if name not in items:
            items[name] = MemoryItem(name, memory.place, "Reserved" if reserved else "Allocated")
        items[name].add_memory_record(memory.increase_bytes, memory.type)
        peaks, reserves = self.peak_allocation_values, self.peak_reserved_values
        peaks[memory.place] = max(peaks[memory.place], memory.peak_allocated)
        reserves[memory.place] = max(reserves[memory.place], memory.peak_reserved)


class StatisticData:
    """All statistics of the trees of a profile."""

    def __init__(self, node_trees: dict[Any, Any], extra_info: dict[str, str]) -> None:
        self.node_trees, self.extra_info = node_trees, extra_info
        self.time_range_summary = TimeRangeSummary()
        self.event_summary = EventSummary()
        self.distributed_summary = DistributedSummary()
        self.memory_summary = MemorySummary()
        for summary in (self.time_range_summary, self.event_summary, self.distributed_summary, self.memory_summary):
            summary.parse(node_trees)

    @property
    def total_time(self) -> float:
        """Nanoseconds of all steps; without steps, of all events."""
        steps = self.time_range_summary.get_cpu_range_sum(TracerEventType.ProfileStep)
        if steps:
            return steps
        return sum_ranges(merge_self_ranges([r for ranges in self.time_range_summary.CPUTimeRange.values() for r in ranges]))


def _build_table(
    statistic_data: StatisticData,
    sorted_by: SortedKeys = SortedKeys.CPUTotal,
    op_detail: bool = True,
    thread_sep: bool = False,
    time_unit: str = "ms",
    row_limit: int = 100,
    max_src_column_width: int = 75,
    views: Any = None,
) -> str:
    """The tables of ``Profiler.summary`` as text."""
    from oar.profiler.tables import Tables

    return Tables(statistic_data, sorted_by, op_detail, thread_sep, time_unit, row_limit, max_src_column_width).text(views)
