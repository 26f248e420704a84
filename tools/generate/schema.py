"""Reads op records: the schema lines of src/oar/ops/families/*.cpp, with brief, traits and Python places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


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
    name: str
    family: str
    parameters: list[Parameter]
    results: list[Result]
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


PARAMETER = re.compile(
    r"^(?P<type>\w+)(\((?P<alias>\w)(?P<written>!)?\))?(?P<q1>\?)?(?P<list>\[\])?(?P<q2>\?)?\s+"
    r"(?P<name>\w+)(\s*=\s*(?P<default>.+))?$")
RESULT = re.compile(r"^Tensor(\((?P<alias>\w)(?P<written>!)?\))?(?P<list>\[\])?(\s+(?P<name>\w+))?$")


def split_commas(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "[(":
            depth += 1
        elif c in "])":
            depth -= 1
        if c == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return parts + [current.strip()] if current.strip() else parts


def parse_parameter(text: str, schema: str) -> Parameter:
    m = PARAMETER.match(text)
    if not m:
        raise SystemExit(f"cannot read parameter '{text}' of schema '{schema}'")
    is_list = bool(m["list"])
    return Parameter(m["name"], m["type"], is_list,
                     optional=bool(m["q2"] if is_list else m["q1"] or m["q2"]),
                     optional_elements=is_list and bool(m["q1"]),
                     written=bool(m["written"]), alias=m["alias"] or "", default=m["default"])


def parse_schema(text: str, family: str) -> Op:
    m = re.match(r"^(\w+)(?:@(\d+))?\((.*)\)\s*->\s*(.+)$", text)
    if not m:
        raise SystemExit(f"cannot read schema '{text}' in {family}")
    parameters = [parse_parameter(p, text) for p in split_commas(m[3])]
    results_text = m[4].strip()
    if results_text.startswith("("):
        results_text = results_text[1:-1]
    results = []
    for r in split_commas(results_text):
        rm = RESULT.match(r)
        if not rm:
            raise SystemExit(f"cannot read result '{r}' of schema '{text}'")
        results.append(Result(rm["name"] or "out", bool(rm["list"]), bool(rm["written"])))
    return Op(m[1], family, parameters, results, version=int(m[2] or 1), schema=text)


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
    return Op(op.name + "_", op.family, [written, *rest], [Result("out", written=True)],
              brief=f"In place: {op.brief[0].lower()}{op.brief[1:]}" if op.brief else "",
              python=places, dtypes=op.dtypes, version=op.version, inplace_of=op.name,
              traits=op.traits - {"HasInplace"}, schema=op.schema)


def read_family(path: Path) -> list[Op]:
    text = strip_comments(path.read_text())
    ops = []
    starts = [m.start() for m in re.finditer(r"const OpDef (\w+)\s*=\s*\{", text)]
    for start, end in zip(starts, starts[1:] + [len(text)]):
        record = text[start:end]
        op = parse_schema(string_field(record, "schema"), path.stem)
        op.variable = re.match(r"const OpDef (\w+)", record)[1]
        for name in ("brief", "python", "numpy", "scalar", "dtypes"):
            setattr(op, name, string_field(record, name))
        op.traits = set(re.findall(r"Trait::(\w+)", record))
        ops.append(op)
        if "HasInplace" in op.traits:
            ops.append(inplace_variant(op))
    return ops


def read_all(folder: Path) -> dict[str, list[Op]]:
    families = {}
    for path in sorted(folder.glob("*.cpp")):
        if "OAR_FAMILY(" in path.read_text():
            families[path.stem] = read_family(path)
    return families
