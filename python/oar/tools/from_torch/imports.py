"""Import statements, and by which local name something of Oar is reached."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Optional, Union

from oar.tools.from_torch.names import Names, Scope, is_foreign
from oar.tools.from_torch.source import Source
from oar.tools.from_torch.tables import MODULES, table, usual_path

__all__ = ["Imports", "advice_of", "oar_path"]


def oar_path(path: str) -> str:
    """Where a name or module of PyTorch is in Oar, whatever the arguments of a call; empty if nowhere."""
    if path in MODULES:
        return MODULES[path]
    rules = table().rules.get(usual_path(path), [])
    plain = [rule.target for rule in rules if not rule.condition and not rule.template]
    return plain[0] if plain else ""


def advice_of(path: str, advice: dict[str, str]) -> str:
    """The advice for a name, or for the module that it is in."""
    while path:
        if path in advice:
            return advice[path]
        path = path.rpartition(".")[0]
    return ""


@dataclass
class Imports:
    """The imports of PyTorch in a program."""

    source: Source
    names: Names
    missing: dict[str, str]
    removed: tuple[str, ...] = ()  # modules whose use is removed
    kept: set[str] = field(default_factory=set)  # local names that the new text uses
    used: set[str] = field(default_factory=set)  # those that the old one used
    needs_oar: bool = False
    has_oar: bool = False
    _statements: list[tuple[Union[ast.Import, ast.ImportFrom], bool]] = field(default_factory=list)

    def local_path(self, target: str, scope: Scope, name: str = "", without: str = "") -> str:
        """How to write a path of Oar at a place.

        Args:
            target: the path.
            scope: where it is written.
            name: the name that stood there, which is kept if it leads to the path.
            without: a name that gets its value at this place.
        """
        best = ("", "")
        of_all = any(local == name and path == "torch" for local, path in self._visible(scope))
        for local, path in self._visible(scope):
            home = oar_path(path)
            if local == without or not home or not (target == home or target.startswith(f"{home}.")):
                continue
            if path == local and "." not in path:  # import torch: it becomes import oar
                home = "oar"
            if home not in MODULES.values() and target != home:
                continue
            if not best[0] or self._rank(local, home, name, of_all) > self._rank(*best, name, of_all):
                best = (local, home)
        if not best[0]:
            self.needs_oar = True
            return target
        self.kept.add(best[0])
        written = "oar" if best[0] in ("torch", "torchvision") else best[0]
        return written + target[len(best[1]):]

    @staticmethod
    def _rank(local: str, home: str, name: str, of_all: bool) -> tuple[int, bool]:
        """What stood there before is best; the nearest module if that was the whole package."""
        return (len(home), local == name) if of_all else (int(local == name), len(home) > 3)

    def _visible(self, scope: Optional[Scope]) -> list[tuple[str, str]]:
        """The names that stand for something of PyTorch at a place."""
        found: dict[str, str] = {}
        inner = scope
        while scope is not None:
            if scope is inner or not isinstance(scope.node, ast.ClassDef):
                for name, bindings in scope.names.items():
                    path = bindings[0].path
                    if len(bindings) == 1 and isinstance(bindings[0].value, ast.Attribute):
                        path = self.names.path(bindings[0].value, scope)  # F = torch.nn.functional
                    same = all(b.path == path or b.value is not None for b in bindings)
                    found.setdefault(name, path if path and is_foreign(path) and same else "")
            scope = scope.parent
        return [(name, path) for name, path in found.items() if path]

    # ---- the statements ----------------------------------------------------------------------------------------------

    def add(self, node: Union[ast.Import, ast.ImportFrom], alone: bool) -> None:
        """Takes a statement that imports something of PyTorch. ``alone``: nothing else is in its block."""
        self._statements.append((node, alone))

    def rewrite(self) -> list[tuple[ast.AST, str]]:
        """Edits the statements.

        Returns:
            what could not be done.
        """
        notes: list[tuple[ast.AST, str]] = []
        seen: set[str] = set()
        for node, alone in self._statements:
            lines = [*self._of_import(node, notes)] if isinstance(node, ast.Import) else [*self._of_from(node, notes)]
            at_top = not self.source.indent(node)
            fresh = [line for line in dict.fromkeys(lines) if not (at_top and line in seen)]
            if at_top:
                seen.update(fresh)
            self._put(node, fresh, alone)
        if self.needs_oar and "import oar" not in seen and not self.has_oar:
            self._add_oar()
        return notes

    def _of_import(self, node: ast.Import, notes: list[tuple[ast.AST, str]]) -> list[str]:
        lines = []
        for alias in node.names:
            if not is_foreign(alias.name):
                lines.append(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
                continue
            home = MODULES.get(alias.name, "")
            if not home:
                if not any(alias.name == r or alias.name.startswith(f"{r}.") for r in self.removed):
                    notes.append((node, self._no_module(alias.name)))
            elif alias.asname is None or home == "oar" == alias.asname:
                lines.append("import oar")
            else:
                lines.append(f"import {home} as {alias.asname}")
        return lines

    def _of_from(self, node: ast.ImportFrom, notes: list[tuple[ast.AST, str]]) -> list[str]:
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            if alias.name == "*":
                home = MODULES.get(str(node.module), "")
                notes.append((node, f"from {node.module} import *: the converter does not see which names are meant; name them"))
                if home:
                    groups.setdefault(home, []).append("*")
                continue
            local, path = alias.asname or alias.name, f"{node.module}.{alias.name}"
            target = oar_path(path)
            if not target:
                if usual_path(path) not in table().rules and not any(path == r or path.startswith(f"{r}.") for r in self.removed):
                    notes.append((node, self._no_module(path)))
                continue
            if local in self.used and local not in self.kept:
                continue
            home, _, name = target.rpartition(".")
            groups.setdefault(home, []).append(name if name == local else f"{name} as {local}")
        return [f"from {home} import {', '.join(names)}" for home, names in groups.items()]

    def _no_module(self, path: str) -> str:
        advice = advice_of(path, self.missing)
        return f"{path}: Oar has no counterpart" + (f"; {advice}" if advice else "")

    def _put(self, node: ast.AST, lines: list[str], alone: bool) -> None:
        source, span = self.source, self.source.span(node)
        indent = source.indent(node) if not source.indent(node).strip() else ""
        above = source.comments_in(span)
        if not lines and not alone and not source.indent(node).strip():
            whole = source.line_span(node)
            rest = source.text[span.end:whole.end].strip()
            source.replace(whole.start, whole.end, "".join(f"{indent}{comment}\n" for comment in [*above, *([rest] if rest else [])]))
            return
        source.replace(span.start, span.end, f"\n{indent}".join([*above, *(lines or ["pass"])]))

    def _add_oar(self) -> None:
        at_top = [node for node, _ in self._statements if not self.source.indent(node)]
        first = at_top[0] if at_top else None
        self.source.insert(self.source.span(first).start if first is not None else 0, "import oar\n")
