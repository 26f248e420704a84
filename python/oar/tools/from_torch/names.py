"""Which names of a program mean something of PyTorch, and what kind of object an expression is, as far as the text tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Optional, Union

__all__ = ["Binding", "Names", "Scope"]

PACKAGES = ("torch", "torchvision", "tensorboardX", "torchaudio", "torchtext")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What a tensor's attribute or method gives that is not a tensor.
_NOT_TENSORS = frozenset({"item", "tolist", "size", "dim", "numel", "nelement", "stride", "shape", "dtype", "device", "ndim",
                          "requires_grad", "backward", "is_contiguous", "data_ptr", "element_size"})


@dataclass
class Binding:
    """One place where a name gets its value."""

    path: str = ""  # what was imported
    value: Optional[ast.expr] = None  # what was assigned
    kind: str = ""  # what it is, if that is known otherwise
    maker: Optional[ast.AST] = None  # the class or function that it is


@dataclass
class Scope:
    """The names of a module, class, function or comprehension."""

    node: ast.AST
    parent: Optional[Scope]
    names: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # global and nonlocal
    attributes: dict[str, list[tuple[ast.expr, Scope]]] = field(default_factory=dict)  # of a class: self.x = ...

    def bind(self, name: str, binding: Binding) -> None:
        if name not in self.outer:
            self.names.setdefault(name, []).append(binding)

    def find(self, name: str) -> tuple[list[Binding], Optional[Scope]]:
        scope: Optional[Scope] = self
        while scope is not None:
            if name in scope.names and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope.names[name], scope
            scope = scope.parent
        return [], None

    def owner(self) -> Optional[Scope]:
        """The class whose method this is in."""
        scope: Optional[Scope] = self
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope


class Names(ast.NodeVisitor):
    """The scopes of a program."""

    def __init__(self, tree: ast.Module) -> None:
        self.scopes: dict[int, Scope] = {}
        self._asked: set[tuple[int, int]] = set()
        self.module = self.scope = self._opened(tree, None)
        for statement in tree.body:
            self.visit(statement)

    def _opened(self, node: ast.AST, parent: Optional[Scope]) -> Scope:
        self.scopes[id(node)] = made = Scope(node, parent)
        return made

    # ---- what binds names --------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self.scope.bind(alias.asname or top, Binding(path=alias.name if alias.asname else top))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.scope.bind(alias.asname or alias.name, Binding(path="" if node.level else f"{node.module}.{alias.name}"))

    def visit_FunctionDef(self, node: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]) -> None:
        if not isinstance(node, ast.Lambda):
            self.scope.bind(node.name, Binding(maker=node))
            for outside in [*node.decorator_list, *filter(None, [node.returns])]:
                self.visit(outside)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for outside in [*node.args.defaults, *filter(None, node.args.kw_defaults), *(a.annotation for a in arguments if a.annotation)]:
            self.visit(outside)
        before, self.scope = self.scope, self._opened(node, self.scope)
        is_forward = getattr(node, "name", "") == "forward" and isinstance(before.node, ast.ClassDef) and self.is_module_class(before)
        for argument in [*arguments, *filter(None, [node.args.vararg, node.args.kwarg])]:
            annotated = argument.annotation is not None and self.path(argument.annotation, before) == "torch.Tensor"
            self.scope.bind(argument.arg, Binding(kind="tensor" if annotated or (is_forward and argument.arg != "self") else ""))
        for inside in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(inside)
        self.scope = before

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name, Binding(maker=node))
        for outside in [*node.bases, *node.keywords, *node.decorator_list]:
            self.visit(outside)
        before, self.scope = self.scope, self._opened(node, self.scope)
        for inside in node.body:
            self.visit(inside)
        self.scope = before

    def _comprehension(self, node: ast.AST) -> None:
        before, self.scope = self.scope, self._opened(node, self.scope)
        self.generic_visit(node)
        self.scope = before

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._bind_items(node.target, node.iter)
        self.generic_visit(node)

    def visit_Global(self, node: Union[ast.Global, ast.Nonlocal]) -> None:
        self.scope.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._bind(node.target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind(node.target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)

    def visit_For(self, node: Union[ast.For, ast.AsyncFor]) -> None:
        self._bind_items(node.target, node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        if node.optional_vars is not None:
            self._bind(node.optional_vars, None)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name, Binding())
        self.generic_visit(node)

    def _bind(self, target: ast.expr, value: Optional[ast.expr], kind: str = "") -> None:
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, Binding(value=value, kind=kind))
        elif isinstance(target, ast.Starred):
            self._bind(target.value, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts: list[Optional[ast.expr]] = [None] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                parts = list(value.elts)
            of_all = kind or ("tensor" if value is not None and self.kind(value, self.scope) == "tensor" else "")
            for part, its in zip(target.elts, parts):
                self._bind(part, its, "" if its is not None else of_all)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self" and value is not None:
            owner = self.scope.owner()
            if owner is not None:
                owner.attributes.setdefault(target.attr, []).append((value, self.scope))

    def _bind_items(self, target: ast.expr, iterated: ast.expr) -> None:
        """The names of a loop: the batches of a loader are tensors."""
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id in ("enumerate", "tqdm") and iterated.args:
            if iterated.func.id == "enumerate" and isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
                self._bind(target.elts[0], None)
                return self._bind_items(target.elts[1], iterated.args[0])
            return self._bind_items(target, iterated.args[0])
        self._bind(target, None, "tensor" if self.kind(iterated, self.scope) in ("loader", "tensor") else "")

    # ---- what names mean ---------------------------------------------------------------------------------------------

    def path(self, node: ast.expr, scope: Scope) -> str:
        """The path in PyTorch (or another imported module) that an expression means, or an empty text."""
        if isinstance(node, ast.Attribute):
            base = self.path(node.value, scope)
            return f"{base}.{node.attr}" if base else ""
        if not isinstance(node, ast.Name):
            return ""
        bindings, home = scope.find(node.id)
        if home is None or (id(home), hash(node.id)) in self._asked:
            return ""
        imported = [b.path for b in bindings if b.path]
        if imported:
            return imported[0] if all(b.path or isinstance(b.value, ast.Constant) for b in bindings) else ""
        if len(bindings) == 1 and isinstance(bindings[0].value, (ast.Attribute, ast.Name)):
            self._asked.add((id(home), hash(node.id)))
            try:
                found = self.path(bindings[0].value, home)
            finally:
                self._asked.discard((id(home), hash(node.id)))
            return found if is_foreign(found) else ""
        return ""

    def is_module_class(self, scope: Scope) -> bool:
        """Whether a class is derived from torch.nn.Module."""
        assert isinstance(scope.node, ast.ClassDef) and scope.parent is not None
        return any(self._is_module_base(base, scope.parent) for base in scope.node.bases)

    def _is_module_base(self, base: ast.expr, scope: Scope) -> bool:
        if self.path(base, scope).startswith("torch.nn."):
            return True
        made = self._class_of(base, scope)
        return made is not None and self.is_module_class(made)

    def _class_of(self, node: ast.expr, scope: Scope) -> Optional[Scope]:
        if not isinstance(node, ast.Name):
            return None
        bindings, _ = scope.find(node.id)
        maker = bindings[0].maker if len(bindings) == 1 else None
        return self.scopes.get(id(maker)) if isinstance(maker, ast.ClassDef) else None

    # ---- what expressions are ----------------------------------------------------------------------------------------

    def kind(self, node: Optional[ast.expr], scope: Scope) -> str:
        """``tensor``, ``module``, ``optimizer``, ``schedule``, ``scaler``, ``loader``, ``loaded`` (from a file), ``state``
        (of a module), ``cell``, ``numpy``, ``other``, or an empty text where the program does not say."""
        if node is None or len(self._asked) > 40:
            return ""
        key = (id(node), id(scope))
        if key in self._asked:
            return ""
        self._asked.add(key)
        try:
            return self._kind(node, scope)
        finally:
            self._asked.discard(key)

    def _kind(self, node: ast.expr, scope: Scope) -> str:
        if isinstance(node, ast.Call):
            return self._kind_of_call(node, scope)
        if isinstance(node, ast.Name):
            bindings, home = scope.find(node.id)
            return _agreed(b.kind or (self.kind(b.value, home) if home is not None else "") for b in bindings)
        if isinstance(node, ast.Attribute):
            owner = scope.owner()
            if isinstance(node.value, ast.Name) and node.value.id == "self" and owner is not None:
                return _agreed(self.kind(value, place) for value, place in owner.attributes.get(node.attr, []))
            base = self.kind(node.value, scope)
            if base == "tensor":
                return "other" if node.attr in _NOT_TENSORS else "tensor"
            return "tensor" if base == "module" and node.attr in ("weight", "bias") else ""
        if isinstance(node, ast.Subscript):
            base = self.kind(node.value, scope)
            return base if base in ("tensor", "loaded") else ""
        if isinstance(node, ast.BinOp):
            return "tensor" if "tensor" in (self.kind(node.left, scope), self.kind(node.right, scope)) else ""
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand, scope)
        if isinstance(node, ast.Compare):
            return "tensor" if self.kind(node.left, scope) == "tensor" else ""
        if isinstance(node, ast.IfExp):
            return _agreed([self.kind(node.body, scope), self.kind(node.orelse, scope)])
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, *_COMPREHENSIONS)):
            return "other"
        return ""

    def _kind_of_call(self, node: ast.Call, scope: Scope) -> str:
        path = self.path(node.func, scope)
        if path:
            return kind_of_result(path)
        made = self._class_of(node.func, scope)
        if made is not None:
            return "module" if self.is_module_class(made) else ""
        if self.kind(node.func, scope) == "module":
            return "tensor"
        if isinstance(node.func, ast.Name):
            return self._kind_of_function(node.func.id, scope)
        if not isinstance(node.func, ast.Attribute):
            return ""
        return self._kind_of_method(node.func, scope)

    def _kind_of_method(self, func: ast.Attribute, scope: Scope) -> str:
        if func.attr == "state_dict":
            return "state"
        if isinstance(func.value, ast.Name) and func.value.id == "self":
            owner = scope.owner()
            return self._kind_of_function(func.attr, owner) if owner is not None and func.attr in owner.names else ""
        base = self.kind(func.value, scope)
        if base == "tensor":
            return "numpy" if func.attr == "numpy" else "other" if func.attr in _NOT_TENSORS else "tensor"
        return base if base == "module" and func.attr in ("to", "cuda", "cpu", "train", "eval", "float", "double", "half", "apply") else ""

    def _kind_of_function(self, name: str, scope: Scope) -> str:
        bindings, _ = scope.find(name)
        maker = bindings[0].maker if len(bindings) == 1 else None
        inner = self.scopes.get(id(maker))
        if inner is None or not isinstance(maker, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ""
        returned = [r.value for r in ast.walk(maker) if isinstance(r, ast.Return) and r.value is not None]
        kinds = []
        for value in returned:
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            kinds.append(_agreed(self.kind(part, inner) for part in parts))
        return _agreed(kinds)


def _agreed(kinds: object) -> str:
    found = set(kinds)  # type: ignore[call-overload]
    return found.pop() if len(found) == 1 else ""


def is_foreign(path: str) -> bool:
    """Whether a path belongs to PyTorch."""
    return path.partition(".")[0] in PACKAGES


def kind_of_result(path: str) -> str:
    """What a call of something of PyTorch, or of NumPy, returns."""
    home, _, name = path.rpartition(".")
    if path == "torch.load":
        return "loaded"
    if home in ("torch.optim.lr_scheduler", "torch.optim"):
        return "schedule" if home.endswith("lr_scheduler") else "optimizer"
    if name == "GradScaler":
        return "scaler"
    if path == "torch.utils.data.DataLoader":
        return "loader"
    if home in ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.nn.parameter") or path == "torch.nn.Parameter":
        return "tensor" if name not in ("device", "Size", "Generator", "save", "manual_seed", "no_grad", "compile", "is_tensor") else "other"
    if home == "torch.nn" and name.endswith("Cell"):
        return "cell"
    if home in ("torch.nn", "torchvision.models"):
        return "module"
    return "numpy" if path.startswith("numpy.") else ""
