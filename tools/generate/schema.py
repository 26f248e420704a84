"""Reads the op records of src/oar/ops/families/*.cpp: schema, brief, traits, Python places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import schema_lines


@dataclass
class Parameter:
    name: str
    type: str
    list: bool = False
    optional: bool = False
    optional_elements: bool = False
    written: bool = False
    alias: str = ""
    default: str | None = None


@dataclass
class Result:
    name: str
    list: bool = False
    written: bool = False


@dataclass
class Op:
    family: str
    name: str = ""
    parameters: list[Parameter] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    brief: str = ""
    python: str = ""
    numpy: str = ""
    scalar: str = ""
    dtypes: str = ""
    variable: str = ""
    version: int = 1
    inplace_of: str = ""
    traits: set[str] = field(default_factory=set)
    schema: str = ""

    @property
    def visible(self) -> list[Parameter]:
        """Those that users see: a name that begins with an underscore is internal."""
        return [p for p in self.parameters if not p.name.startswith("_")]


STRING = r'"((?:[^"\\]|\\.)*)"'


def string_field(record: str, name: str) -> str:
    """A record's string field; adjacent literals are one string, as in C++."""
    m = re.search(r"\." + name + r"\s*=\s*((?:" + STRING + r"\s*)+)", record)
    return "".join(re.findall(STRING, m[1])).replace('\\"', '"') if m else ""


def strip_comments(text: str) -> str:
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def inplace_variant(op: Op) -> Op:
    first, *rest = op.parameters
    written = Parameter(**{**first.__dict__, "written": True, "alias": "a"})
    places = " ".join(p for p in op.python.split())
    return Op(op.family, op.name + "_", [written, *rest], [Result("out", written=True)],
              brief=f"In place: {op.brief[0].lower()}{op.brief[1:]}" if op.brief else "",
              python=places, dtypes=op.dtypes, version=op.version, inplace_of=op.name,
              traits=op.traits - {"HasInplace"}, schema=op.schema)


def read_records(path: Path) -> list[Op]:
    """The records of a family, with their schemas as text."""
    text = strip_comments(path.read_text())
    starts = [m.start() for m in re.finditer(r"const OpDef (\w+)\s*=\s*\{", text)]
    ops = []
    for start, end in zip(starts, starts[1:] + [len(text)]):
        record = text[start:end]
        op = Op(family=path.stem, variable=re.match(r"const OpDef (\w+)", record)[1])
        for name in ("schema", "brief", "python", "numpy", "scalar", "dtypes"):
            setattr(op, name, string_field(record, name))
        op.traits = set(re.findall(r"Trait::(\w+)", record))
        ops.append(op)
    return ops


def read_all(folder: Path, cache: Path, compiler: list[str] | None = None) -> dict[str, list[Op]]:
    """The ops of every family. The parser of their schemas is kept in the folder `cache`; see `schema_lines`."""
    families = {path.stem: read_records(path) for path in sorted(folder.glob("*.cpp"))
                if "OAR_FAMILY(" in path.read_text()}
    records = [op for ops in families.values() for op in ops]
    for op, parsed in zip(records, schema_lines.parse([op.schema for op in records], cache, compiler or [])):
        if "mistake" in parsed:
            raise SystemExit(f"{folder / op.family}.cpp: {parsed['mistake']}")
        op.name, op.version = parsed["name"], parsed["version"]
        op.parameters = [Parameter(**p) for p in parsed["parameters"]]
        op.results = [Result(**r) for r in parsed["results"]]
    return {family: [form for op in ops for form in forms(op)] for family, ops in families.items()}


def forms(op: Op) -> list[Op]:
    return [op, inplace_variant(op)] if "HasInplace" in op.traits else [op]
