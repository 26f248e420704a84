"""Statements that change as a whole: set-up of PyTorch, schedules, rates of an optimiser, shapes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Optional, Union

from oar.tools.from_torch.tables import missing
from oar.tools.from_torch.values import grouped

if TYPE_CHECKING:
    from oar.tools.from_torch.names import Names, Scope
    from oar.tools.from_torch.source import Source

__all__ = ["Statements"]


class Statements(ast.NodeVisitor):
    """What ``Rewriter`` does with statements. Kept apart for the length of the file."""

    source: Source
    names: Names
    scope: Scope
    parents: dict[int, ast.AST]
    statement: Optional[ast.stmt]
    report: Any
    scheduled: set[str]

    def _alone(self, node: ast.AST) -> bool:
        """Whether a statement is the only one of its block."""
        parent = self.parents.get(id(node))
        blocks = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        return not isinstance(parent, ast.Module) and any(block == [node] for block in blocks if isinstance(block, list))

    # ---- what only sets PyTorch up -----------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and self._only_sets_up(node.value.func):
            self._remove(node)
        else:
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and self._only_sets_up(node.targets[0]):
            self._remove(node)
        else:
            self.generic_visit(node)

    def _only_sets_up(self, node: ast.expr) -> bool:
        path = self.names.path(node, self.scope)
        return any(path == removed or path.startswith(f"{removed}.") for removed in missing.REMOVED)

    def _remove(self, node: ast.stmt) -> None:
        text = ast.unparse(node)
        self.report(node, f"{text}: it sets up PyTorch alone and was removed")
        span, lines = self.source.span(node), self.source.line_span(node)
        if self._alone(node) or self.source.text[lines.start:lines.end].strip() != self.source.text[span.start:span.end]:
            self.source.replace(span.start, span.end, "pass")
        else:
            self.source.replace(lines.start, lines.end, "")

    # ---- what is written to the memory of a parameter ---------------------------------------------------------------

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """``p.data -= x``: Oar's ``data`` is the tensor itself."""
        name = _IN_PLACE.get(type(node.op))
        if isinstance(node.target, ast.Attribute) and node.target.attr == "data" and name and self._has_data(node.target):
            self.visit(node.target.value)
            self.visit(node.value)
            span = self.source.span(node)
            self.source.replace(span.start, span.end, self.source.span(node.target.value), f".detach().{name}(",
                                self.source.span(node.value), ")")
        else:
            self.generic_visit(node)

    def detach_data(self, node: ast.Attribute) -> None:
        """``p.data.fill_(0)`` and ``p.data[i] = x``: what is detached shares the memory and can be written."""
        parent = self.parents.get(id(node))
        in_place = isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.endswith("__")
        stored = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store) and parent.value is node
        if (in_place or stored) and self._has_data(node):
            end = self.source.span(node).end
            self.source.replace(end - len("data"), end, "detach()")

    def _has_data(self, node: ast.Attribute) -> bool:
        return self.names.kind(node.value, self.scope) not in ("loader", "other", "numpy")

    # ---- schedules ---------------------------------------------------------------------------------------------------

    def attach_schedule(self, node: ast.Call) -> None:
        """Gives the optimiser its schedule: Oar's schedules do not know it."""
        optimizer = next((a for a in node.args[:1]), None) or next((k.value for k in node.keywords if k.arg == "optimizer"), None)
        statement = self.statement
        if optimizer is None:
            return
        name = ast.unparse(optimizer)
        if not isinstance(statement, ast.Assign) or statement.value is not node or not isinstance(optimizer, (ast.Name, ast.Attribute)):
            self.report(node, f"Oar's schedule does not know the optimiser; call {name}.set_lr_scheduler(schedule) when both are there")
            return
        self.scheduled.add(name)
        indent = self.source.indent(statement)
        if indent.strip():
            self.report(node, f"call {name}.set_lr_scheduler({ast.unparse(statement.targets[0])}) after this statement")
            return
        self.source.insert(self.source.line_span(statement).end, f"{indent}{name}.set_lr_scheduler({ast.unparse(statement.targets[0])})\n")

    # ---- rates -------------------------------------------------------------------------------------------------------

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        """``for group in optimizer.param_groups: group["lr"] = rate`` sets the rate."""
        change = node.body[0] if len(node.body) == 1 and not node.orelse else None
        if not _is_param_groups(node.iter) or not isinstance(node.target, ast.Name) or not isinstance(change, (ast.Assign, ast.AugAssign)):
            self.generic_visit(node)
            return
        target = change.targets[0] if isinstance(change, ast.Assign) else change.target
        if not _is_item(target, "lr") or ast.unparse(target.value) != node.target.id:  # type: ignore[attr-defined]
            self.generic_visit(node)
            return
        assert isinstance(node.iter, ast.Attribute)
        optimizer = ast.unparse(node.iter.value)
        self.visit(change.value)
        if optimizer in self.scheduled:
            self.report(node, f"{optimizer}.set_lr: Oar raises an error while a schedule sets the rate; let the schedule do it")
        span = self.source.span(node)
        if isinstance(change, ast.Assign):
            self.source.replace(span.start, span.end, f"{optimizer}.set_lr(", self.source.span(change.value), ")")
        else:
            sign = {ast.Mult: "*", ast.Div: "/", ast.Add: "+", ast.Sub: "-"}.get(type(change.op), "*")
            self.source.replace(span.start, span.end, f"{optimizer}.set_lr({optimizer}.get_lr() {sign} ", *grouped(change.value, self.source), ")")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        inner = node.value
        if isinstance(inner, ast.Subscript) and _is_param_groups(inner.value) and _is_item(node, "lr"):
            assert isinstance(inner.value, ast.Attribute)
            span = self.source.span(node)
            if isinstance(node.ctx, ast.Load):
                self.visit(inner.value.value)
                self.source.replace(span.start, span.end, self.source.span(inner.value.value), ".get_lr()")
            else:
                self.report(node, f"{ast.unparse(node)}: write {ast.unparse(inner.value.value)}.set_lr(rate)")
            return
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "get_last_lr" \
                and isinstance(node.slice, ast.Constant) and node.slice.value in (0, -1):
            self.visit(inner.func.value)
            span = self.source.span(node)
            self.source.replace(span.start, span.end, self.source.span(inner.func.value), ".last_lr")
            return
        if _is_param_groups(inner):
            self.report(node, f"{ast.unparse(node)}: Oar's optimisers have no param_groups; see get_lr and set_lr")
        self.generic_visit(node)

    # ---- shapes are lists --------------------------------------------------------------------------------------------

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add):
            for part, other in ((node.left, node.right), (node.right, node.left)):
                if _is_shape(part) and isinstance(other, ast.Tuple):
                    self._as_tuple(part)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Tuple) or self.names.path(getattr(side, "func", side), self.scope) == "torch.Size" for side in sides):
            for side in sides:
                if _is_shape(side):
                    self._as_tuple(side)
        self.generic_visit(node)

    def _as_tuple(self, node: ast.expr) -> None:
        span = self.source.span(node)
        self.source.replace(span.start, span.end, "tuple(", span, ")")

    # ---- calls that are no names of PyTorch --------------------------------------------------------------------------

    def _special_call(self, node: ast.Call) -> bool:
        """``next(net.parameters())``: Oar's parameters are a list."""
        if isinstance(node.func, ast.Name) and node.func.id == "next" and len(node.args) == 1:
            inner = node.args[0]
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "parameters":
                self.visit(inner)
                span = self.source.span(node)
                self.source.replace(span.start, span.end, self.source.span(inner), "[0]")
                return True
        return False

    def only_convolutions(self, node: ast.AST) -> bool:
        """Whether a statement is within ``if isinstance(layer, nn.Conv2d)``."""
        while id(node) in self.parents:
            parent = self.parents[id(node)]
            if isinstance(parent, ast.If) and node in parent.body:
                tests = [n for n in ast.walk(parent.test) if isinstance(n, ast.Attribute)]
                if tests and all(t.attr.startswith("Conv") for t in tests if isinstance(t.value, ast.Name) and t.attr[:1].isupper()):
                    return any(t.attr.startswith("Conv") for t in tests)
                return False
            node = parent
        return False


_IN_PLACE = {ast.Add: "add_", ast.Sub: "subtract_", ast.Mult: "multiply_", ast.Div: "divide_"}


def _is_param_groups(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "param_groups"


def _is_item(node: ast.AST, key: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == key


def _is_shape(node: ast.expr) -> bool:
    """``x.shape`` or a slice of it."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "shape"
