"""Writes the reference pages: one page per family, one section per op."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from schema import Op, Parameter

# By its path: the package itself is not built yet.
_file = Path(__file__).resolve().parents[2] / "python" / "oar" / "_schema_types.py"
_spec = importlib.util.spec_from_file_location("_schema_types", _file)
schema_types = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schema_types)


def annotation(op: Op, p: Parameter) -> str:
    text = p.type + ("(a!)" if p.written else "") + ("?" if p.optional_elements else "") + ("[]" if p.list else "")
    return schema_types.python_type(text + ("?" if p.optional else ""), "Broadcast" in op.traits)


def signature(op: Op) -> str:
    parts = [f"{p.name}: {annotation(op, p)}" + (f" = {p.default}" if p.default is not None else "")
             for p in op.visible]
    returns = schema_types.result_type(len(op.results), op.results[0].list)
    return f"{op.name}({', '.join([*parts, 'name: str | None = None'])}) -> {returns}"


def section(op: Op) -> str:
    where = [f"`{p}.{op.name}`" for p in op.python.split()] or [f"`oar._C.ops.{op.name}`"]
    lines = [f"## {op.name}", "", op.brief, "", "```python", signature(op), "```", "",
             f"Found at {', '.join(where)}; in C++ `oar::{op.name}`.", ""]
    if op.visible:
        lines += ["| parameter | type | default |", "|---|---|---|"]
        for p in op.visible:
            default = "required" if p.default is None else f"`{p.default}`"
            lines.append(f"| `{p.name}` | {annotation(op, p).replace('|', 'or')} | {default} |")
        lines.append("")
    if op.dtypes:
        lines += [f"Takes {op.dtypes.replace(' ', ', ')} types.", ""]
    if op.numpy:
        lines += [f"The same in NumPy: `{op.numpy}`", ""]
    if op.scalar:
        lines += [f"Each element: `{op.scalar}`", ""]
    return "\n".join(lines)


def pages(families: dict[str, list[Op]]) -> dict[str, str]:
    out = {}
    index = ["# Op reference", "", "Generated from the op records.", ""]
    for family, ops in families.items():
        out[f"{family}.md"] = "\n".join([f"# {family}", "", *map(section, ops)])
        index += [f"## [{family}]({family}.md)", "", *[f"- [{o.name}]({family}.md#{o.name}): {o.brief}" for o in ops], ""]
    out["index.md"] = "\n".join(index)
    return out
