"""Profiles as protocol buffers: the message ``NodeTreesProto`` that Paddle writes, in its wire format."""

from __future__ import annotations

from typing import Any

from oar import _protobuf as pb
from oar.profiler.event_types import TracerEventType, TracerMemEventType
from oar.profiler.result import Event, HostNode, MemoryNode, ProfilerResult, MEMORY

__all__ = ["read_tree", "write_tree"]

_VERSION = "1.0.2"


def _memory(node: MemoryNode) -> bytes:
    return pb.field(1, pb.message(
        int(node.timestamp_ns), node.type.value, node.addr, node.process_id, node.thread_id, node.increase_bytes, node.place,
        node.current_allocated, node.current_reserved, node.peak_allocated, node.peak_reserved,
    ))  # fmt: skip


def _supplement(node: HostNode) -> bytes:
    """The operands of an op under the key "operands", and its layer in place of a call stack."""
    operands = pb.message("operands", pb.field(1, node.operands)) if node.operands else b""
    return pb.field(1, pb.message(
        int(node.start_ns), node.name, node.process_id, node.thread_id, b"", operands, node.layer, int(node.flops),
    ))  # fmt: skip


def _host(node: HostNode, number: int, parent: int) -> bytes:
    event = pb.message(node.name, node.type.value, int(node.start_ns), int(node.end_ns), node.process_id, node.thread_id)
    text = pb.field(1, number) + pb.field(2, parent) + pb.field(3, event)
    text += b"".join(pb.field(5, _memory(m)) for m in node.mem_node)
    if node.type is TracerEventType.Operator:
        text += pb.field(6, _supplement(node))
    return text


def _thread(root: HostNode) -> bytes:
    out = [pb.field(1, root.thread_id)]
    stack, number = [(root, -1)], 0
    while stack:
        node, parent = stack.pop()
        out.append(pb.field(2, _host(node, number, parent)))
        stack += [(child, number) for child in reversed(node.children_node)]
        number += 1
    return b"".join(out)


def write_tree(result: ProfilerResult, path: str) -> None:
    """Write a result to a file."""
    text = pb.field(1, _VERSION) + pb.field(2, 0)
    text += b"".join(pb.field(3, _thread(root)) for root in result.get_data().values())
    text += b"".join(pb.field(4, pb.message(key, str(value))) for key, value in result.get_extra_info().items())
    with open(path, "wb") as file:
        file.write(text)


# reading ---------------------------------------------------------------------------------------------


def _once(data: memoryview) -> dict[int, Any]:
    """The fields of a message that has each once."""
    return dict(pb.fields(data))


def _read_memory(data: memoryview) -> MemoryNode:
    f = _once(_once(data)[1])
    event = Event(MEMORY, "", f[1], f[1], f[5], 0, "", "", 0, pb.signed(f[6]), f[8], 0.0)
    node = MemoryNode(event, f[10], f[4])
    node.type, node.addr, node.place = TracerMemEventType(f[2]), f[3], pb.text(f[7])
    node.current_reserved, node.peak_reserved = f[9], f[11]
    return node


def _read_supplement(data: memoryview, node: HostNode) -> None:
    f = _once(_once(data)[1])
    node.layer, node.flops = pb.text(f.get(7, b"")), float(f.get(8, 0))
    types = _once(f[6]) if 6 in f else {}
    if 2 in types:
        node.operands = pb.text(_once(types[2]).get(1, b""))


def _read_host(data: memoryview) -> tuple[int, int, HostNode]:
    number = parent = 0
    memory: list[memoryview] = []
    supplements: list[memoryview] = []
    event: dict[int, Any] = {}
    for field, value in pb.fields(data):
        if field == 1:
            number = pb.signed(value)
        elif field == 2:
            parent = pb.signed(value)
        elif field == 3:
            event = _once(value)
        elif field == 5:
            memory.append(value)
        elif field == 6:
            supplements.append(value)
    node = HostNode(pb.text(event[1]), TracerEventType(event[2]), event[3], event[4], event[5], event[6])
    node.mem_node = [_read_memory(m) for m in memory]
    for supplement in supplements:
        _read_supplement(supplement, node)
    return number, parent, node


def _read_thread(data: memoryview) -> HostNode:
    nodes: dict[int, HostNode] = {}
    root: HostNode | None = None
    for field, value in pb.fields(data):
        if field != 2:
            continue
        number, parent, node = _read_host(value)
        nodes[number] = node
        if parent in nodes:
            nodes[parent].children_node.append(node)
        else:
            root = root or node
    if root is None:
        raise ValueError("a thread has no events")
    return root


def read_tree(path: str) -> ProfilerResult:
    """The result that a file holds."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    trees: dict[int, HostNode] = {}
    facts: dict[str, str] = {}
    version = ""
    try:
        for field, value in pb.fields(data):
            if field == 1:
                version = pb.text(value)
            elif field == 3:
                root = _read_thread(value)
                trees[root.thread_id] = root
            elif field == 4:
                pair = _once(value)
                facts[pb.text(pair[1])] = pb.text(pair[2])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"[load_profiler_result] {path!r} is not a profile in protobuf format: {error}. "
                         "Pass a file that Profiler.export(path, 'pb') wrote.") from None  # fmt: skip
    if not version:
        raise ValueError(f"[load_profiler_result] {path!r} holds no profile. "
                         "Pass a file that Profiler.export(path, 'pb') wrote.")  # fmt: skip
    return ProfilerResult([], trees, facts)
