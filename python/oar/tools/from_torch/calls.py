"""Calls: which row holds, and what becomes of the arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional, Union

from oar.tools.from_torch.rules import Parameter, Rule
from oar.tools.from_torch.source import Piece, Source
from oar.tools.from_torch.values import VALUES, expanded, is_falsy

__all__ = ["Call", "chosen"]

Report = Callable[[ast.AST, str], None]
Item = Union[ast.expr, ast.keyword]


def _named(rules: list[Rule], call: ast.Call) -> dict[str, ast.expr]:
    """The arguments by the names of PyTorch."""
    names = next((rule.parameters for rule in rules if rule.parameters is not None and not rule.anywhere), ())
    placed = {p.name: a for p, a in zip(names or (), call.args) if not isinstance(a, ast.Starred)}
    return {**placed, **{k.arg: k.value for k in call.keywords if k.arg}}


def chosen(rules: list[Rule], call: ast.Call, kind_of: Callable[[ast.expr], str]) -> Optional[Rule]:
    """The first row whose condition a call meets.

    Args:
        rules: the rows of the name.
        call: the call.
        kind_of: the kind of an expression.
    """
    for rule in rules:
        condition, names = rule.condition, _named([rule, *rules], call)
        if not condition or condition == "call":
            return rule
        if condition.isdigit():
            if len(call.args) == int(condition) and not any(k.arg not in _WITHOUT_POSITION for k in call.keywords):
                return rule
        elif "=" in condition:
            name, _, value = condition.partition("=")
            if name in names and ast.unparse(names[name]) == value:
                return rule
        elif ":" in condition:
            name, _, kind = condition.partition(":")
            if name in names and kind_of(names[name]) == kind:
                return rule
        elif condition in names and not is_falsy(names[condition]):
            return rule
    return None


_WITHOUT_POSITION = frozenset({"dtype", "device", "requires_grad", "generator"})


@dataclass
class Call:
    """A call and the row for it."""

    node: ast.Call
    rule: Rule
    source: Source
    report: Report
    receiver: Optional[ast.expr] = None

    def __post_init__(self) -> None:
        items: list[Item] = [*self.node.args, *self.node.keywords]
        self.items = sorted(items, key=lambda item: (item.lineno, item.col_offset))
        self.passed = _named([self.rule], self.node)
        if self.receiver is not None:
            self.passed["self"] = self.receiver
        self.kept_end: Optional[int] = None
        self.dropped: list[int] = []

    def replacement(self) -> Optional[list[Piece]]:
        """What the whole call becomes, if the row says so."""
        for parameter in self.rule.parameters or ():
            self._judge(parameter)
        return expanded(self.rule.template, self.passed, self.source, self._every())

    def _every(self) -> list[ast.expr]:
        kept = {p.name for p in self.rule.parameters or () if p.dropped}
        return [item for item in self.items if not (isinstance(item, ast.keyword) and item.arg in kept)]  # type: ignore[misc]

    def _judge(self, parameter: Parameter) -> None:
        """Reports an argument that is left out though it matters."""
        node = self.passed.get(parameter.name)
        if node is None or parameter.harmless is None:
            return
        text = ast.unparse(node)
        if text not in ("None", parameter.harmless) and not _same_number(text, parameter.harmless):
            self.report(node, f"{self.rule.path}: Oar has no argument {parameter.name}; it was left out (it was {text})")

    def arguments(self) -> None:
        """Edits the arguments."""
        rule = self.rule
        if not rule.changes_arguments:
            return
        starred = any(isinstance(a, ast.Starred) for a in self.node.args)
        if rule.packed:
            self._pack()
        elif starred and not rule.anywhere:
            self.report(self.node, f"{rule.path}: the arguments of a * are not known here; Oar's are {_order(rule)}")
            return
        if any(k.arg is None for k in self.node.keywords) and rule.parameters:
            self.report(self.node, f"{rule.path}: the arguments of a ** are not known here; Oar's names are {_order(rule)}")
        self._each()
        self._drop()
        self._append()

    def _pack(self) -> None:
        places = [self.source.span(a) for a in self.node.args]
        if places:
            self.source.insert(places[0].start, "[")
            self.source.insert(places[-1].end, "]")

    def _each(self) -> None:
        by_name = {p.name: p for p in self.rule.parameters or ()}
        stays, position = True, 0
        for at, item in enumerate(self.items):
            if isinstance(item, ast.keyword):
                self._keyword(at, item, by_name)
                continue
            if self.rule.anywhere or self.rule.packed:
                continue
            if position >= len(self.rule.parameters or ()):
                self.report(item, f"{self.rule.path}: more arguments than the converter knows; Oar's are {_order(self.rule)}")
                break
            parameter = (self.rule.parameters or ())[position]
            stays = stays and position < self.rule.stay and not parameter.dropped and not parameter.template
            self._value(at, item, parameter, "" if stays else f"{parameter.new}=", None)
            position += 1

    def _keyword(self, at: int, item: ast.keyword, by_name: dict[str, Parameter]) -> None:
        parameter = by_name.get(item.arg or "")
        if item.arg is None:
            return
        if parameter is None:
            if not self.rule.anywhere and not self.rule.packed:
                self.report(item.value, f"{self.rule.path}: the converter does not know its argument {item.arg}; it was left as it is")
            return
        self._value(at, item.value, parameter, "", item)

    def _value(self, at: int, node: ast.expr, parameter: Parameter, prefix: str, keyword: Optional[ast.keyword]) -> None:
        """Edits one argument. ``prefix`` makes one by position a keyword."""
        start, end = (self.source.span(keyword or node).start, self.source.span(node).end)
        self._judge(parameter)
        made: Optional[list[Piece]]
        if parameter.dropped:
            made = None
        elif parameter.template:
            made = expanded(parameter.template, self.passed, self.source, [])
        elif parameter.value:
            value = VALUES[parameter.value](node, self.source)
            made = None if value is None else [f"{parameter.new}=" if keyword else prefix, *value]
        else:
            if keyword is not None and parameter.new != parameter.name:
                self.source.replace(start, start + len(parameter.name), parameter.new)
            elif prefix:
                self.source.insert(start, prefix)
            return
        if made is None:
            self.dropped.append(at)
        else:
            self.source.replace(start, end, *made)

    def _drop(self) -> None:
        """Removes the arguments that are left out, with their commas."""
        spans = [self.source.span(item) for item in self.items]
        kept = [i for i in range(len(spans)) if i not in self.dropped]
        last = kept[-1] if kept else -1
        for i in self.dropped:
            if i < last:
                self.source.replace(spans[i].start, spans[i + 1].start, "")
        if self.dropped and self.dropped[-1] > last:
            start = spans[last].end if kept else spans[0].start
            self.source.replace(start, spans[-1].end if kept else self.source.span(self.node).end - 1, "")
        self.kept_end = spans[last].end if kept else None

    def _append(self) -> None:
        """Adds what Oar needs and PyTorch does not."""
        texts: list[list[Piece]] = []
        for parameter in self.rule.parameters or ():
            absent, _, needed = parameter.absent.partition("/")
            if absent and parameter.name not in self.passed and (not needed or needed in self.passed):
                texts.append([f"{parameter.new}={absent}"])
        for added in self.rule.added:
            name, _, value = added.partition("=")
            pieces = expanded(value, self.passed, self.source, [])
            if pieces is not None:
                texts.append([f"{name}=", *pieces])
        at = self.source.span(self.node).end - 1 if self.kept_end is None else self.kept_end
        for i, pieces in enumerate(texts):
            self.source.insert(at, ", " if i or self.kept_end is not None else "", *pieces)


def _order(rule: Rule) -> str:
    return ", ".join(p.new for p in rule.parameters or () if p.new)


def _same_number(text: str, other: str) -> bool:
    try:
        return float(text) == float(other)
    except ValueError:
        return text == other.strip("'\"")
