"""Writes type stubs for the op functions and Tensor methods."""

from __future__ import annotations

from schema import Op, Parameter

TYPES = {"Tensor": "Tensor", "bool": "bool", "int": "int", "float": "float", "Scalar": "float | int | bool | complex",
         "str": "str", "dtype": "DTypeLike", "shape": "Sequence[int]",
         "program": "object"}
HEAD = '''# Generated from the op records. Do not edit.
from __future__ import annotations
from typing import Sequence
from oar import Tensor, dtype as _dtype

DTypeLike = str | _dtype
'''


def annotation(p: Parameter) -> str:
    kind = TYPES[p.type]
    if p.type == "Tensor" and not p.list:
        kind = "Tensor | float | int" if not p.written else "Tensor"
    if p.list:
        element = f"{kind} | None" if p.optional_elements else kind
        kind = f"Sequence[{element}]" + (f" | {kind}" if p.type == "int" else "")
    return kind + (" | None" if p.optional else "")


def signature(op: Op, method: bool) -> str:
    parts = []
    for i, p in enumerate(op.parameters):
        if method and i == 0:
            parts.append("self")
            continue
        parts.append(f"{p.name}: {annotation(p)}" + (f" = {p.default}" if p.default is not None else ""))
    parts.append("name: str | None = None")
    if len(op.results) > 1:
        result = "tuple[" + ", ".join("Tensor" for _ in op.results) + "]"
    else:
        result = "list[Tensor]" if op.results[0].list else "Tensor"
    return f"def {op.name}({', '.join(parts)}) -> {result}:"


def places(op: Op) -> list[str]:
    return op.python.split()


def files(ops: list[Op]) -> dict[str, str]:
    """`_ops.pyi`: every op, and the methods of Tensor that are ops."""
    lines = [HEAD]
    for op in ops:
        lines += [signature(op, False), f'    """{op.brief}"""', "    ..."]
    lines += ["", "class TensorOps:", '    """Methods of Tensor that are ops."""']
    for op in ops:
        if "Tensor" in places(op):
            lines += ["    " + signature(op, True), f'        """{op.brief}"""', "        ..."]
    return {"_ops.pyi": "\n".join(lines) + "\n"}
