"""A source text, places of its syntax tree in it, and edits of it."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass, field
from typing import Union

__all__ = ["Source", "Span"]


@dataclass(frozen=True)
class Span:
    """A part of the text, as it is after the edits inside it."""

    start: int
    end: int


Piece = Union[str, Span]


@dataclass
class Source:
    """The text of a program. Edits replace parts of it; a replacement may contain parts, with what was edited in them."""

    text: str
    _edits: dict[tuple[int, int], list[Piece]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lines = [f"{line}\n" for line in self.text.split("\n")]  # as the parser counts lines
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """Where a place of the syntax tree is: its columns count bytes of UTF-8."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.AST) -> Span:
        """The text of a node."""
        at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return Span(self.offset(at[0], at[1]), self.offset(at[2], at[3]))

    def original(self, node: ast.AST) -> str:
        span = self.span(node)
        return self.text[span.start:span.end]

    def line_span(self, node: ast.AST) -> Span:
        """The lines of a statement, with the end of the last one."""
        return Span(self._starts[node.lineno - 1], min(self._starts[node.end_lineno], len(self.text)))  # type: ignore[attr-defined]

    def indent(self, node: ast.AST) -> str:
        start = self._starts[node.lineno - 1]  # type: ignore[attr-defined]
        return self.text[start:self.span(node).start]

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def replace(self, start: int, end: int, *pieces: Piece) -> None:
        self._edits[start, end] = list(pieces)

    def insert(self, at: int, *pieces: Piece) -> None:
        self._edits.setdefault((at, at), []).extend(pieces)

    def render(self, start: int = 0, end: int | None = None) -> str:
        """The text from one place to another, after the edits."""
        self._order = sorted(self._edits, key=lambda e: (e[0], e[0] != e[1], -e[1]))  # what is inserted at a place comes first
        return self._rendered(start, len(self.text) if end is None else end, None)

    def _rendered(self, start: int, end: int, within: tuple[int, int] | None) -> str:
        made, at = [], start
        for edit in self._order:
            if edit[0] < at or edit[1] > end or edit == within or not self._is_here(edit, end, within):
                continue
            made += [self.text[at:edit[0]], self._joined(edit)]
            at = edit[1]
        return "".join([*made, self.text[at:end]])

    def _is_here(self, edit: tuple[int, int], end: int, within: tuple[int, int] | None) -> bool:
        if edit[0] != edit[1]:
            return True
        if within is not None and edit[0] == within[0]:
            return False  # it stands before the edit that is being rendered
        return edit[0] < end or end == len(self.text)

    def _joined(self, edit: tuple[int, int]) -> str:
        return "".join(p if isinstance(p, str) else self._rendered(p.start, p.end, edit) for p in self._edits[edit])

    def comments_in(self, span: Span) -> list[str]:
        """The comments within a part of the text."""
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(self.text[span.start:span.end]).readline))
        except (tokenize.TokenError, IndentationError):
            return []
        return [token.string for token in tokens if token.type == tokenize.COMMENT]
