"""The walk over a program: each name of PyTorch is looked up, and what Oar has for it is written there."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Optional, Union

from oar.tools.from_torch.calls import Call, chosen
from oar.tools.from_torch.imports import Imports, advice_of, oar_path
from oar.tools.from_torch.names import Names, is_foreign
from oar.tools.from_torch.rules import Rule
from oar.tools.from_torch.source import Piece, Source
from oar.tools.from_torch.statements import Statements
from oar.tools.from_torch.tables import MODULES, method_table, methods, missing, table, usual_path

__all__ = ["Note", "Rewriter"]

_OPENS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
          ast.GeneratorExp)
# Methods of tensors whose namesakes of lists, texts and arrays are common.
_PAIRS = frozenset({"max", "min", "sort", "median"})


@dataclass(frozen=True)
class Note:
    """What could not be done, or what a user must know.

    Args:
        line: of the old program, from 1.
        text: what is wrong there, and what to do.

    Examples:
        >>> from oar.tools.from_torch import convert
        >>> note, = convert("import torch\\ny = torch.no_such_name(1)").notes
        >>> note.line
        2
    """

    line: int
    text: str


class Rewriter(Statements):
    """Fills a source with edits."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self.names = Names(tree)
        self.imports = Imports(source, self.names, missing.ADVICE, missing.REMOVED)
        self.notes: list[tuple[ast.AST, str]] = []
        self.scope = self.names.module
        self.statement: Optional[ast.stmt] = None
        self.scheduled: set[str] = set()  # optimisers that have a schedule
        self.cells: list[ast.Call] = []
        self.called_cells = 0
        self.parents: dict[int, ast.AST] = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def run(self) -> None:
        self.imports.has_oar = any(b.path == "oar" for b in self.names.module.names.get("oar", []))
        self.visit(self.tree)
        for cell in self.cells if not self.called_cells else []:
            self.report(cell, "a cell of Oar returns its output and its new state, as a pair; PyTorch's returns the state: take [1] of the call")
        self.notes += self.imports.rewrite()

    def report(self, node: ast.AST, text: str) -> None:
        if (node, text) not in self.notes:
            self.notes.append((node, text))

    def visit(self, node: ast.AST) -> None:
        scope, statement = self.scope, self.statement
        if isinstance(node, ast.stmt):
            self.statement = node
        if isinstance(node, _OPENS):
            self.scope = self.names.scopes[id(node)]
        super().visit(node)
        self.scope, self.statement = scope, statement

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda]) -> None:
        """What stands outside of the body is read outside of it."""
        inner, outside = self.scope, self.scope.parent or self.scope
        for name, value in ast.iter_fields(node):
            self.scope = inner if name == "body" else outside
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    self.visit(part)
        self.scope = inner

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    # ---- imports -----------------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        if any(is_foreign(alias.name) for alias in node.names):
            self.imports.add(node, self._alone(node))
        self._other_libraries(node, [alias.name for alias in node.names])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and is_foreign(str(node.module)):
            self.imports.add(node, self._alone(node))
        self._other_libraries(node, [str(node.module)])

    def _other_libraries(self, node: ast.AST, modules: list[str]) -> None:
        for module in modules:
            top = module.partition(".")[0]
            if not is_foreign(module) and top in missing.ADVICE:
                self.report(node, f"{module}: it needs PyTorch; {missing.ADVICE[top]}")

    def visit_Constant(self, node: ast.Constant) -> None:
        """An annotation that is written as a text."""
        parent = self.parents.get(id(node))
        annotation = getattr(parent, "annotation", None) is node or getattr(parent, "returns", None) is node
        if annotation and isinstance(node.value, str) and self.names.path(ast.Name("torch"), self.scope) == "torch":
            span = self.source.span(node)
            new = re.sub(r"\btorch\.Tensor\b", "oar.Tensor", self.source.text[span.start:span.end])
            self.source.replace(span.start, span.end, new)

    # ---- names -------------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> None:
        self._path(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._path(node):
            return
        if node.attr in methods.MODULE_ATTRIBUTES and self._base(node) != "self" and self._kind(node.value) in ("", "module"):
            end = self.source.span(node).end
            self.source.replace(end - len(node.attr), end, methods.MODULE_ATTRIBUTES[node.attr])
        if node.attr == "data":
            self.detach_data(node)
        if node.attr == "saved_tensors":
            end = self.source.span(node).end
            self.source.replace(end - len(node.attr), end, "saved_tensor()")
        self.visit(node.value)

    def _base(self, node: ast.expr) -> str:
        while isinstance(node, ast.Attribute):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""

    def _path(self, node: Union[ast.Name, ast.Attribute]) -> bool:
        """Rewrites a name or a path that is not called. Returns False if the name does not belong to PyTorch."""
        path = self.names.path(node, self.scope)
        if not path or not is_foreign(path) or isinstance(node.ctx, ast.Store) and isinstance(node, ast.Name):
            return False
        self.imports.used.add(self._base(node))
        part: ast.expr = node
        while True:
            target = oar_path(path)
            if target:
                break
            if not isinstance(part, ast.Attribute) or "." not in path or usual_path(path) in table().rules:
                return self._unknown(node)
            part, path = part.value, path.rpartition(".")[0]
        if part is not node and path in MODULES:
            return self._unknown(node)
        self._value_use(node, usual_path(path))
        self._write(part, target)
        return True

    def _value_use(self, node: ast.expr, path: str) -> None:
        """A function or class that is passed on instead of called: its calls are elsewhere."""
        rules = table().rules.get(path, [])
        parent = self.parents.get(id(node))
        harmless = isinstance(parent, (ast.ClassDef, ast.arg, ast.AnnAssign, ast.Attribute, ast.Subscript, ast.BinOp, ast.ExceptHandler,
                                       ast.FunctionDef, ast.withitem)) or self._in_isinstance(node)
        if not harmless and any(p.new != p.name and not p.dropped or p.value for rule in rules for p in rule.parameters or ()):
            self.report(node, f"{path} is passed on; where it is called, its arguments have Oar's names: "
                              f"{', '.join(p.new for p in rules[-1].parameters or () if p.new)}")

    def _in_isinstance(self, node: ast.AST) -> bool:
        parent = self.parents.get(id(node))
        while isinstance(parent, (ast.Tuple, ast.List)):
            parent = self.parents.get(id(parent))
        return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("isinstance", "issubclass")

    def _write(self, node: ast.expr, target: str) -> None:
        span = self.source.span(node)
        given = self.statement.targets[0] if isinstance(self.statement, ast.Assign) and self.statement.value is node else None
        written = self.imports.local_path(target, self.scope, self._base(node), given.id if isinstance(given, ast.Name) else "")
        if written != self.source.text[span.start:span.end]:
            self.source.replace(span.start, span.end, written)

    def _unknown(self, node: ast.expr) -> bool:
        path = self.names.path(node, self.scope)
        advice = advice_of(usual_path(path), missing.ADVICE)
        if not advice:
            home, _, name = path.rpartition(".")
            same = f"{MODULES.get(home, '')}.{name}" if home in MODULES else ""
            advice = f"Oar has {same}; compare its arguments" if same and _exists(same) else "write it with other operations"
        self.report(node, f"{path}: Oar has no counterpart that the converter knows; {advice}")
        return True

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Before Python 3.12 some expressions in texts over several lines have wrong places: they are left alone."""
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                continue
            if self._is_where_it_says(part.value):
                self.visit(part)
            elif any(is_foreign(self.names.path(n, self.scope)) for n in ast.walk(part.value) if isinstance(n, (ast.Name, ast.Attribute))):
                self.report(node, f"{ast.unparse(part.value)}: convert this expression within a text yourself, or give it a name before")

    def _is_where_it_says(self, node: ast.expr) -> bool:
        try:
            return ast.dump(ast.parse(f"({self.source.original(node)})", mode="eval").body) == ast.dump(node)
        except (SyntaxError, IndexError, ValueError):
            return False

    # ---- calls -------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        if self._special_call(node):
            return
        path = self.names.path(node.func, self.scope)
        if self._kind(node) == "cell":
            self.cells.append(node)
        if self._kind(node.func) == "cell":
            self.called_cells += 1
            end = self.source.span(node).end
            self.source.replace(end - 1, end, ")[1]")
        if path and is_foreign(path):
            self._call_of_path(node, path)
        elif isinstance(node.func, ast.Attribute):
            self._call_of_method(node, node.func)
        else:
            self.generic_visit(node)

    def _call_of_path(self, node: ast.Call, path: str) -> None:
        rules = table().rules.get(usual_path(path), [])
        rule = chosen(rules, node, self._kind)
        if rule is None:
            self._path(node.func)  # type: ignore[arg-type]
            self._arguments_of(node)
            return
        self.imports.used.add(self._base(node.func))
        self._advise(node, rule)
        call = Call(node, rule, self.source, self.report)
        self._arguments_of(node)
        if rule.template:
            self._replace(node, call)
            return
        call.arguments()
        self._write(node.func, rule.target)
        self._oar_in(*[p.template for p in rule.parameters or ()])
        if path.startswith("torch.optim.lr_scheduler."):
            self.attach_schedule(node)

    def _advise(self, node: ast.Call, rule: Rule) -> None:
        if rule.advice:
            self.report(node, f"{rule.path}: {rule.advice}")
        if rule.path.startswith("torch.nn.init.kaiming") and not self.only_convolutions(node):
            self.report(node, f"{rule.path}: Oar takes a weight of two axes for [in, out], PyTorch for [out, in]; if this is one, "
                              "swap mode 'fan_in' (the default) and 'fan_out'")

    def _replace(self, node: ast.Call, call: Call) -> None:
        made: Optional[list[Piece]] = call.replacement()
        if made is None:
            self.report(node, f"{call.rule.path}: the converter does not know this form of the call")
            return
        self._oar_in(*[p for p in made if isinstance(p, str)])
        span = self.source.span(node)
        self.source.replace(span.start, span.end, *made)

    def _oar_in(self, *texts: str) -> None:
        if any("oar." in text for text in texts):
            self.imports.local_path("oar", self.names.module)
            self.imports.needs_oar = True

    def _arguments_of(self, node: ast.Call) -> None:
        for part in [*node.args, *node.keywords]:
            self.visit(part)

    def _kind(self, node: ast.expr) -> str:
        return self.names.kind(node, self.scope)

    def _call_of_method(self, node: ast.Call, func: ast.Attribute) -> None:
        kind = self._kind(func.value)
        rule = self._rule_of_method(node, func, kind)
        if rule is None:
            if kind == "tensor":
                self._known_method(node, func)
            if func.attr in methods.MODULE_ATTRIBUTES:
                self.visit(func)
            else:
                self.visit(func.value)
            self._arguments_of(node)
            return
        if rule.advice:
            self.report(node, f"{func.attr}: {rule.advice}")
        call = Call(node, rule, self.source, self.report, func.value)
        self.visit(func.value)
        self._arguments_of(node)
        if rule.template:
            self._replace(node, call)
            return
        call.arguments()
        self._oar_in(*[p.template for p in rule.parameters or ()])
        name = rule.target.lstrip(".")
        if name != func.attr:
            end = self.source.span(func).end
            self.source.replace(end - len(func.attr), end, name)

    def _rule_of_method(self, node: ast.Call, func: ast.Attribute, kind: str) -> Optional[Rule]:
        if kind in ("tensor", "optimizer", "schedule", "module", "scaler"):
            rules = method_table(kind).rules.get(f"{kind}.{func.attr}")
            if rules is not None:
                return chosen(rules, node, self._kind)
        if kind in ("", "tensor") and not self._own_method(func):
            certain = method_table("certain").rules.get(f"certain.{func.attr}")
            if certain is not None and not self._named_otherwise(func):
                return chosen(certain, node, self._kind)
        rules = method_table("tensor").rules.get(f"tensor.{func.attr}") if kind == "" else None
        if rules is None or self._own_method(func) or self.names.path(func.value, self.scope):
            return None
        rule = chosen(rules, node, self._kind)
        if rule is None or self._is_of_a_tensor(node, func):
            return rule
        if func.attr in ("split", "to", "type", "backward", "unique", "equal", "slogdet") or not node.args:
            return None
        if not isinstance(node.args[0], ast.Constant) or isinstance(node.args[0].value, int):
            self.report(node, f"{ast.unparse(func)}: if this is a tensor, write oar.compat.{func.attr}({ast.unparse(func.value)}, ...), "
                              "which returns values and indices as PyTorch's does")
        return None

    def _is_of_a_tensor(self, node: ast.Call, func: ast.Attribute) -> bool:
        """Whether a call can only be one of a tensor's method, though the program does not say what it is called on."""
        passed = {k.arg for k in node.keywords}
        if func.attr in ("to", "backward"):
            return bool(passed & {"non_blocking", "gradient"})
        if "dim" in passed or (func.attr == "split" and node.args and not isinstance(node.args[0], (ast.JoinedStr, ast.Constant))):
            return True
        parent = self.parents.get(id(node))
        pair = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple) and len(parent.targets[0].elts) == 2
        part = isinstance(parent, ast.Attribute) and parent.attr in ("values", "indices")
        taken = isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value in (0, 1)
        return bool(node.args) and func.attr in _PAIRS and (pair or part or taken)

    def _own_method(self, func: ast.Attribute) -> bool:
        """Whether a class of the program defines the method itself."""
        owner = self.scope.owner()
        return isinstance(func.value, ast.Name) and func.value.id == "self" and owner is not None and func.attr in owner.names

    @staticmethod
    def _named_otherwise(func: ast.Attribute) -> bool:
        """Whether the name says that it is an optimiser or the like, whose load_state_dict needs no change."""
        name = ast.unparse(func.value).lower()
        return func.attr == "load_state_dict" and any(part in name for part in ("opt", "sched", "scaler"))

    def _known_method(self, node: ast.Call, func: ast.Attribute) -> None:
        from oar._C import Tensor

        if not hasattr(Tensor, func.attr) and not func.attr.startswith("__"):
            advice = methods.ADVICE.get(func.attr, "write it with other operations")
            self.report(node, f"{func.attr}: Oar's tensors have no such method; {advice}")


def _exists(path: str) -> bool:
    import oar

    found: object = oar
    for name in path.split(".")[1:]:
        found = getattr(found, name, None)
    return found is not None
