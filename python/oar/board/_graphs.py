"""Graphs: programs of Oar, and the GraphDef messages that TensorBoard draws."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oar import _C, Tensor
from oar import _protobuf as pb

__all__ = ["MOST_NODES", "captured", "definition_of", "draw"]

MOST_NODES = 5000
_DETAIL, _TOOLTIP, _STYLE = "oar_type", "oar_call", "oar_style"


def captured(model: Any, input_spec: Any) -> tuple[str, list[tuple]]:
    """The text of a program, and the boxes of its picture.

    Args:
        model: a layer, a function, or a program.
        input_spec: its inputs, if it is not a program.
    """
    from oar.jit.capture import CapturedProgram, capture
    from oar.static import Program

    if isinstance(model, Program):
        text = model.to_string()
        return text, _C.program_boxes(text)
    if not isinstance(model, CapturedProgram):
        if not callable(model):
            raise TypeError(f"[LogWriter.add_graph] model is a {type(model).__name__}. Pass a layer, a function or a program.")
        if input_spec is None:
            raise ValueError("[LogWriter.add_graph] input_spec is missing. Pass an InputSpec or a tensor for each input, "
                             "such as [oar.static.InputSpec([-1, 3], 'float32')].")
        specs = [input_spec] if isinstance(input_spec, Tensor) or not isinstance(input_spec, Sequence) else list(input_spec)
        name = getattr(model, "__name__", None) or type(model).__name__
        model = capture(model, specs, name=re.sub(r"\W", "_", name).strip("_") or "main")
    return str(model), model._native.boxes()


def _attribute(name: str, value: str) -> bytes:
    return pb.field(5, pb.message(name, pb.field(2, value)))


def definition_of(boxes: list[tuple]) -> bytes:
    """A GraphDef with a node for each box, in a scope for each layer."""
    names: list[str] = []
    nodes = []
    for i, (title, detail, tooltip, style, reads, layer) in enumerate(boxes):
        scope = layer.replace(".", "/") + "/" if layer else ""
        names.append(re.sub(r"[^\w./>-]", "_", f"{scope}{title}_{i}").lstrip("_/-"))
        inputs = b"".join(pb.field(3, names[k]) for k in reads)
        nodes.append(pb.field(1, pb.field(1, names[-1]) + pb.field(2, title) + inputs + _attribute(_DETAIL, detail)
                              + _attribute(_TOOLTIP, tooltip) + _attribute(_STYLE, style)))
    return b"".join(nodes) + pb.field(4, pb.field(1, 22))


class _Node:
    def __init__(self, data: memoryview) -> None:
        self.name = self.op = ""
        self.inputs: list[str] = []
        self.attributes: dict[str, str] = {}
        for number, value in pb.fields(data):
            if number == 1:
                self.name = pb.text(value)
            elif number == 2:
                self.op = pb.text(value)
            elif number == 3:  # "name", "name:1" for a later result, "^name" for one that only must run before
                self.inputs.append(pb.text(value).lstrip("^").partition(":")[0])
            elif number == 5:
                pair = dict(pb.fields(value))
                text = next((part for inner, part in pb.fields(pair.get(2, memoryview(b""))) if inner == 2), None)
                if text is not None:
                    self.attributes[pb.text(pair.get(1, b""))] = bytes(text).decode(errors="replace")

    def box(self, reads: list[int], is_read: bool) -> tuple:
        known = self.attributes.get
        style = known(_STYLE) or ("input" if not self.inputs else "other" if is_read else "output")
        tooltip = known(_TOOLTIP) or "\n".join([f"{self.name}: {self.op}", *(f"{k} = {v[:200]}" for k, v in self.attributes.items())])
        return self.op or self.name, known(_DETAIL) or self.name[-30:], tooltip, re.sub(r"\W", "", style), reads


def _in_order(nodes: dict[str, _Node]) -> list[_Node]:
    """Each after those it reads. Of a loop, one edge is left out."""
    done: dict[str, None] = {}
    begun: set[str] = set()
    for first in nodes:
        stack = [first]
        while stack:
            name = stack[-1]
            begun.add(name)
            waiting = [i for i in nodes[name].inputs if i in nodes and i not in begun]
            if waiting:
                stack.append(waiting[0])
            else:
                stack.pop()
                done.setdefault(name)
    return [nodes[name] for name in done]


def _draw_definition(data: bytes) -> str:
    nodes: dict[str, _Node] = {}
    for number, value in pb.fields(memoryview(data)):
        if number == 1:
            node = _Node(value)
            nodes[node.name] = node
        if len(nodes) > MOST_NODES:
            raise ValueError(f"the graph has more than {MOST_NODES} nodes, which is too many to draw")
    ordered = _in_order(nodes)
    places = {node.name: i for i, node in enumerate(ordered)}
    read = {name for node in ordered for name in node.inputs}
    rows = [node.box(sorted({places[name] for name in node.inputs if places.get(name, i) < i}), node.name in read)
            for i, node in enumerate(ordered)]
    return _C.draw_graph(f"graph · {len(rows)} nodes", rows)


def draw(graph: str | bytes) -> str:
    """The picture of a program's text or of a GraphDef, as SVG."""
    return _C.draw_program(graph) if isinstance(graph, str) else _draw_definition(graph)
