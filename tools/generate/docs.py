"""Writes the reference pages: one page per family, one section per op."""

from __future__ import annotations

from schema import Op
from stubs import annotation, places, signature


def section(op: Op) -> str:
    where = [f"`{p}.{op.name}`" for p in places(op)] or [f"`oar._C.ops.{op.name}`"]
    lines = [f"## {op.name}", "", op.brief, "", "```python", signature(op, False).rstrip(":"), "```", "",
             f"Found at {', '.join(where)}; in C++ `oar::{op.name}`.", ""]
    if op.parameters:
        lines += ["| parameter | type | default |", "|---|---|---|"]
        for p in op.parameters:
            default = "required" if p.default is None else f"`{p.default}`"
            lines.append(f"| `{p.name}` | {annotation(p).replace('|', 'or')} | {default} |")
        lines.append("")
    if op.dtypes:
        lines += [f"Takes {op.dtypes.replace(' ', ', ')} types.", ""]
    if op.numpy:
        lines += [f"The same in NumPy: `{op.numpy}`", ""]
    return "\n".join(lines)


def pages(families: dict[str, list[Op]]) -> dict[str, str]:
    out = {}
    index = ["# Op reference", "", "Generated from the op records.", ""]
    for family, ops in families.items():
        out[f"{family}.md"] = "\n".join([f"# {family}", "", *map(section, ops)])
        index += [f"## [{family}]({family}.md)", "", *[f"- [{o.name}]({family}.md#{o.name}): {o.brief}" for o in ops], ""]
    out["index.md"] = "\n".join(index)
    return out
