"""Trees of Python source that look alike in every version of Python: the nodes of ``ast``, with names where ``ast`` has text.

A parameter of a function is a ``Name`` whose context is ``Param``, and what an ``except`` binds is a ``Name``, too.

Examples:
    >>> from oar.utils import gast
    >>> tree = gast.parse('def f(x): return x')
    >>> [type(node.ctx).__name__ for node in gast.walk(tree) if isinstance(node, gast.Name)]
    ['Param', 'Load']
    >>> gast.unparse(tree)
    'def f(x):\\n    return x'
"""

from __future__ import annotations

import ast
import warnings
from ast import (
    AST,
    NodeTransformer,
    NodeVisitor,
    copy_location,
    dump,
    fix_missing_locations,
    get_docstring,
    increment_lineno,
    iter_child_nodes,
    iter_fields,
    walk,
)
from typing import Any

_NODES = sorted(
    name for name, kind in vars(ast).items()
    if isinstance(kind, type) and issubclass(kind, AST) and not name.startswith("_")
    and name not in ("AST", "Name", "arg", "Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice")
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Param and others are deprecated in ast, where nothing uses them
    globals().update({name: getattr(ast, name) for name in _NODES})

__all__ = [
    "AST",
    "Name",
    "NodeTransformer",
    "NodeVisitor",
    "ast_to_gast",
    "copy_location",
    "dump",
    "fix_missing_locations",
    "gast_to_ast",
    "get_docstring",
    "increment_lineno",
    "iter_child_nodes",
    "iter_fields",
    "literal_eval",
    "parse",
    "unparse",
    "walk",
]
__all__.extend(_NODES)


class Name(ast.expr):
    """A name: of a variable, or of a parameter with its annotation.

    Args:
        id: the text.
        ctx: ``Load()``, ``Store()``, ``Del()`` or ``Param()``.
        annotation: of a parameter, or None.
        type_comment: of a parameter, or None.
    """

    _fields = ("id", "ctx", "annotation", "type_comment")
    id: str
    ctx: ast.expr_context
    annotation: ast.expr | None
    type_comment: str | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class _ToNames(NodeTransformer):
    def visit_Name(self, node: ast.Name) -> AST:
        return copy_location(Name(id=node.id, ctx=node.ctx, annotation=None, type_comment=None), node)

    def visit_arg(self, node: ast.arg) -> AST:
        self.generic_visit(node)
        made = Name(id=node.arg, ctx=ast.Param(), annotation=node.annotation, type_comment=node.type_comment)
        return copy_location(made, node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> AST:
        self.generic_visit(node)
        if node.name is not None:
            bound = Name(id=node.name, ctx=ast.Store(), annotation=None, type_comment=None)
            node.name = copy_location(bound, node)  # type: ignore[assignment]
        return node


class _FromNames(NodeTransformer):
    def visit_Name(self, node: Any) -> AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Param):
            return copy_location(ast.arg(arg=node.id, annotation=node.annotation, type_comment=node.type_comment), node)
        return copy_location(ast.Name(id=node.id, ctx=node.ctx), node)

    def visit_ExceptHandler(self, node: Any) -> AST:
        bound, node.name = node.name, None
        self.generic_visit(node)
        node.name = bound.id if isinstance(bound, Name) else bound
        return node


def ast_to_gast(node: AST) -> AST:
    """A tree of ``ast`` as one of this module. The nodes are changed in place.

    Args:
        node: the root.
    """
    return _ToNames().visit(node)


def gast_to_ast(node: AST) -> AST:
    """A tree of this module as one that ``compile`` takes. The nodes are changed in place.

    Args:
        node: the root.
    """
    return _FromNames().visit(node)


def parse(*args: Any, **kwargs: Any) -> AST:
    """The tree of a source text; takes what ``ast.parse`` takes."""
    return ast_to_gast(ast.parse(*args, **kwargs))


def _copied(node: AST) -> AST:
    import copy

    return gast_to_ast(copy.deepcopy(node))


def unparse(node: AST) -> str:
    """The source text of a tree."""
    return ast.unparse(fix_missing_locations(_copied(node)))


def literal_eval(node_or_string: Any) -> Any:
    """The value of a literal; takes what ``ast.literal_eval`` takes."""
    return ast.literal_eval(_copied(node_or_string) if isinstance(node_or_string, AST) else node_or_string)
