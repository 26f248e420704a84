"""Shrinks a failing script: removes statements and replaces expressions by their parts."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator

__all__ = ["shrink"]

_BODIES = ("body", "orelse", "finalbody", "handlers")


def shrink(script: str, fails: Callable[[str], bool], seconds: float = 20.0) -> str:
    """The smallest script that was found within the time and still fails."""
    end = time.monotonic() + seconds
    best, refused = ast.unparse(ast.parse(script)), set()
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for attempt in _smaller(ast.parse(best)):
            if time.monotonic() > end:
                break
            text = ast.unparse(ast.fix_missing_locations(attempt))
            if len(text) >= len(best) or text in refused:
                continue
            if fails(text):
                best, progress = text, True
                break
            refused.add(text)
    return best


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """Copies of the tree with one thing less: whole statements first, from the end, then parts of expressions."""
    for size in (8, 4, 2, 1):
        for path, field, index, length in reversed(list(_statements(tree))):
            if index + size <= length:
                yield _without(tree, path, field, index, size)
    for path, field, index, _ in _statements(tree):
        statement = getattr(_at(tree, path), field)[index]
        if isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            for inner in _BODIES[:3]:
                if getattr(statement, inner, None):
                    yield _with_statements(tree, path, field, index, getattr(statement, inner))
    yield from _with_simpler_expressions(tree)


def _statements(tree: ast.AST, path: tuple = ()) -> Iterator[tuple]:
    for field in _BODIES:
        body = getattr(tree, field, None)
        if isinstance(body, list):
            for i, child in enumerate(body):
                yield path, field, i, len(body)
                yield from _statements(child, (*path, (field, i)))


def _at(tree: ast.AST, path: tuple) -> ast.AST:
    for field, index in path:
        tree = getattr(tree, field)[index]
    return tree


def _without(tree: ast.Module, path: tuple, field: str, index: int, size: int) -> ast.Module:
    tree = copy.deepcopy(tree)
    body = getattr(_at(tree, path), field)
    del body[index:index + size]
    if not body and field == "body" and path:
        body.append(ast.Pass())
    return tree


def _with_statements(tree: ast.Module, path: tuple, field: str, index: int, statements: list) -> ast.Module:
    tree = copy.deepcopy(tree)
    getattr(_at(tree, path), field)[index:index + 1] = copy.deepcopy(statements)
    return tree


def _parts(node: ast.expr) -> list[ast.expr]:
    """Expressions that may replace a larger one."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.BoolOp):
        return list(node.values)
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*inner, *node.args]
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        return [node.value]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.elt]
    return []


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if field in ("targets", "target", "func", "decorator_list", "bases"):
                continue
            if isinstance(value, ast.expr):
                yield node, field, None, value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield node, field, i, item


def _with_simpler_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    count = sum(1 for _ in _places(tree))
    for number in range(count):
        *_, original = next(_place(tree, number))
        for choice in range(len(_parts(original))):
            changed = copy.deepcopy(tree)
            node, field, index, value = next(_place(changed, number))
            part = _parts(value)[choice]
            if index is None:
                setattr(node, field, part)
            else:
                getattr(node, field)[index] = part
            yield changed


def _place(tree: ast.AST, number: int) -> Iterator[tuple]:
    for i, place in enumerate(_places(tree)):
        if i == number:
            yield place
