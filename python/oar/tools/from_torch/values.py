"""Changes of single arguments, and texts with arguments in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Optional

from oar.tools.from_torch.source import Piece, Source

__all__ = ["VALUES", "expanded", "grouped", "is_falsy"]

_HOLE = re.compile(r"\{(?P<name>\w+|\*)(?:\[(?P<index>\d)\])?(?:@(?P<value>\w+))?(?::(?P<default>[^}]*))?\}")
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.JoinedStr)


def is_falsy(node: ast.expr) -> bool:
    """Whether an argument is written as 0, None or False."""
    return isinstance(node, ast.Constant) and not node.value


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else ...


def _negate(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    if isinstance(_constant(node), bool):
        return [repr(not _constant(node))]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [source.span(node.operand)]
    return ["not ", *grouped(node, source)]


def _time_major(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    return None if _constant(node) is True else _negate(node, source)


def _complement(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    value = _constant(node)
    if isinstance(value, (int, float)):
        return [repr(round(1.0 - value, 12))]
    return ["1 - ", *grouped(node, source)]


def _attribute(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    value = _constant(node)
    return None if value is True else ["False"] if value is False else ["None if ", source.span(node), " else False"]


def _direction(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    value = _constant(node)
    if isinstance(value, bool):
        return ['"bidirect"'] if value else None
    return ['"bidirect" if ', source.span(node), ' else "forward"']


def _mode(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    value = _constant(node)
    if isinstance(value, bool):
        return ['"train"' if value else '"test"']
    return ['"train" if ', source.span(node), ' else "test"']


def _truth(node: ast.expr, source: Source) -> Optional[list[Piece]]:
    return None if is_falsy(node) else ["True"] if not isinstance(node, ast.Name) else ["bool(", source.span(node), ")"]


# What a row names after @. None leaves the argument out.
VALUES: dict[str, Callable[[ast.expr, Source], Optional[list[Piece]]]] = {
    "attribute": _attribute, "complement": _complement, "direction": _direction, "mode": _mode, "negate": _negate, "time_major": _time_major,
    "truth": _truth,
}


def grouped(node: ast.expr, source: Source) -> list[Piece]:
    """An expression, in brackets if an operator beside it would take it apart."""
    return [source.span(node)] if isinstance(node, _ATOMS) else ["(", source.span(node), ")"]


def expanded(text: str, arguments: dict[str, ast.expr], source: Source, every: list[ast.expr]) -> Optional[list[Piece]]:
    """A text with arguments in the place of its holes.

    Args:
        text: the text.
        arguments: those that were passed, by name.
        source: the program.
        every: all arguments in the order of the call, for the hole ``{*}``.

    Returns:
        its pieces; None if a value says that nothing is to be passed, or an argument without default is missing.
    """
    made: list[Piece] = []
    at = 0
    for hole in _HOLE.finditer(text):
        made.append(text[at:hole.start()])
        at = hole.end()
        if hole["name"] == "*":
            made += _listed(every, source)
            continue
        node = arguments.get(hole["name"])
        if node is None:
            if hole["default"] is None:
                return None
            made.append(hole["default"])
            continue
        part = _filled(hole, node, source, text)
        if part is None:
            return None
        made += part
    return [*made, text[at:]]


def _listed(nodes: list[ast.expr], source: Source) -> list[Piece]:
    made: list[Piece] = []
    for node in nodes:
        made += [", " if made else "", source.span(node)]
    return made


def _filled(hole: re.Match[str], node: ast.expr, source: Source, text: str) -> Optional[list[Piece]]:
    if hole["value"]:
        return VALUES[hole["value"]](node, source)
    if hole["index"]:
        if isinstance(node, (ast.Tuple, ast.List)) and int(hole["index"]) < len(node.elts):
            return [source.span(node.elts[int(hole["index"])])]
        return [*grouped(node, source), f"[{hole['index']}]"]
    alone = text[:hole.start()].rstrip()[-1:] in ("", "(", ",", "=", "[") and text[hole.end():].lstrip()[:1] in ("", ")", ",", "]")
    return [source.span(node)] if alone else grouped(node, source)
