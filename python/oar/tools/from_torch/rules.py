"""The rows of the tables: what a name of PyTorch becomes, and what becomes of the arguments of its calls.

A row is ``name[condition](parameters) -> target ; advice``. Everything but the name may be left out.

- *condition*: ``n`` arguments by position and no others, ``argument`` passed and not 0, None or False, or ``argument=value``.
  The first row whose condition holds is taken.
- *parameters*: those of PyTorch in its order. Those before ``|`` may stay where they are; the others become keywords.

  =====================  ==========================================================================
  ``p``                  passed as it is
  ``p=q``                Oar's name is ``q``
  ``p=q@negate:True``    the value is changed by a function of ``VALUES``; ``q=True`` if it is not passed
  ``p!``                 left out: it has no meaning in Oar
  ``p?v``                left out; reported unless it is ``v`` or None
  ``p~text``             replaced by the text, where ``{p}`` is an argument, ``{p:v}`` has a default, ``{p[0]}`` is an element
  ``+text``              added
  ``*``                  any number by position
  ``*p=q``               all by position, as one list ``q``
  =====================  ==========================================================================

  Backquotes hold a text with spaces together.
- *target*: Oar's path. ``= text`` replaces the whole call. Without one, the path is that of the table and the name.
- *advice*: what a user must know; it is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["Parameter", "Rule", "Table", "read"]

_ROW = re.compile(r"^(?P<name>[\w.]+)(?:\[(?P<condition>[^\]]*)\])?(?:\((?P<parameters>.*?)\)(?=\s*$|\s*->|\s*;|\s*=\s))?"
                  r"(?:\s*->\s*(?P<target>[\w.]+))?(?:\s*=\s(?P<template>[^;]*))?(?:\s*;\s*(?P<advice>.*))?$")
_PARAMETER = re.compile(r"^(?P<name>\*?\w+)(?:=(?P<new>\w+))?(?:@(?P<value>\w+))?(?::(?P<absent>.*))?$")


@dataclass(frozen=True)
class Parameter:
    """What becomes of one argument."""

    name: str
    new: str
    value: str = ""
    absent: str = ""
    dropped: bool = False
    harmless: str | None = None  # dropped and reported unless it has this value
    template: str = ""


@dataclass(frozen=True)
class Rule:
    """One row."""

    path: str
    target: str
    condition: str = ""
    parameters: tuple[Parameter, ...] | None = None  # None: the arguments are the same
    stay: int = 0  # how many may stay arguments by position
    anywhere: bool = False  # any number of arguments by position
    packed: str = ""
    added: tuple[str, ...] = ()
    template: str = ""
    advice: str = ""

    @property
    def changes_arguments(self) -> bool:
        return bool(self.parameters or self.added or self.packed or self.template)


@dataclass
class Table:
    """Rows by the path of PyTorch."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)

    def add(self, rule: Rule) -> None:
        self.rules.setdefault(rule.path, []).append(rule)


def _parameter(token: str) -> Parameter:
    named = re.match(r"\w+", token)
    assert named, token
    name, rest = named.group(), token[named.end():]
    if rest.startswith("~"):
        return Parameter(name, "", template=rest[1:])
    if rest.startswith("!"):
        return Parameter(name, "", dropped=True)
    if rest.startswith("?"):
        return Parameter(name, "", dropped=True, harmless=rest[1:])
    found = _PARAMETER.match(token)
    assert found, token
    return Parameter(name, found["new"] or name, found["value"] or "", found["absent"] or "")


def _parsed(text: str) -> dict[str, object]:
    tokens = [quoted or plain for quoted, plain in re.findall(r"`([^`]*)`|(\S+)", text)]
    bar = tokens.index("|") if "|" in tokens else None
    plain = [t for t in tokens if t != "|" and not t.startswith(("+", "*"))]
    packed = next((t.partition("=")[2] for t in tokens if t.startswith("*") and len(t) > 1), "")
    before = [t for t in (tokens if bar is None else tokens[:bar]) if not t.startswith(("+", "*"))]
    return {"parameters": tuple(_parameter(t) for t in plain), "stay": len(before), "anywhere": "*" in tokens, "packed": packed,
            "added": tuple(t[1:] for t in tokens if t.startswith("+"))}


def read(rows: str, home: str, oar: str, table: Table) -> None:
    """Adds rows to a table.

    Args:
        rows: the rows, one a line; a line of several names stands for as many rows of a name alone.
        home: the path of PyTorch that the names belong to.
        oar: the path of Oar where they are by default.
        table: the table.
    """
    for line in rows.strip().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if re.fullmatch(r"[\w. ]+", line):
            for name in line.split():
                table.add(Rule(f"{home}.{name}", f"{oar}.{name}"))
            continue
        found = _ROW.match(line)
        assert found, f"this row cannot be read: {line}"
        more = _parsed(found["parameters"]) if found["parameters"] is not None else {}
        target = found["target"] or f"{oar}.{found['name']}"
        table.add(Rule(f"{home}.{found['name']}", target, found["condition"] or "", template=(found["template"] or "").strip(),
                       advice=(found["advice"] or "").strip(), **more))  # type: ignore[arg-type]
