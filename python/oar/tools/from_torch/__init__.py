"""Rewrites a PyTorch training script to Oar's names: ``python -m oar.tools.from_torch train.py -o train_oar.py``.

The text is edited at the places where names of PyTorch stand, so comments and formatting stay. What could not be converted
is reported with its line and what to do instead. The names are in ``tables``, the form of their rows in ``rules``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from oar.tools.from_torch.rewrite import Note, Rewriter
from oar.tools.from_torch.source import Source

__all__ = ["Converted", "Note", "convert"]


@dataclass(frozen=True)
class Converted:
    """A converted program.

    Args:
        text: the new program.
        notes: what could not be converted, or what a user must know.

    Examples:
        >>> from oar.tools.from_torch import convert
        >>> made = convert("from torch.nn import ReLU")
        >>> made.text, made.notes
        ('from oar.nn import ReLU', [])
    """

    text: str
    notes: list[Note]


def convert(text: str, annotate: bool = False) -> Converted:
    """A program that is written for PyTorch, with the names of Oar.

    Args:
        text: the program.
        annotate: whether each note also stands as a comment ``# from_torch: ...`` on its line.

    Returns:
        an object with ``text``, the new program, and ``notes``: the line, in the old program, and the text of each.

    Examples:
        >>> from oar.tools.from_torch import convert
        >>> print(convert("import torch\\nx = torch.cat([torch.zeros(2), torch.ones(3)])  # both").text)
        import oar
        x = oar.concat([oar.zeros(2), oar.ones(3)])  # both
    """
    tree = ast.parse(text)
    ends = "\r\n" if "\r\n" in text else "\n"
    source = Source(text.replace("\r\n", "\n"))
    rewriter = Rewriter(source, tree)
    rewriter.run()
    found = sorted(rewriter.notes, key=lambda note: note[0].lineno)  # type: ignore[attr-defined]
    if annotate:
        _annotate(source, rewriter, found)
    made, notes = source.render(), [Note(node.lineno, note) for node, note in found]  # type: ignore[attr-defined]
    try:
        ast.parse(made)
    except SyntaxError as error:  # quotation marks within a text, before Python 3.12
        notes.append(Note(error.lineno or 0, f"the result is not Python here: {error.msg}; convert this line yourself"))
    return Converted(made.replace("\n", ends), notes)


def _annotate(source: Source, rewriter: Rewriter, notes: list[tuple[ast.AST, str]]) -> None:
    for node, note in notes:
        statement = node
        while not isinstance(statement, ast.stmt):
            statement = rewriter.parents[id(statement)]
        comment = f"# from_torch: {note}"
        lines = source.line_span(statement)
        last = source.text[lines.start:lines.end].rstrip("\n")
        if statement.lineno == statement.end_lineno and "#" not in last:
            source.insert(lines.start + len(last.rstrip()), f"  {comment}")
        else:
            start = source.line_start(statement.lineno)
            indent = last[:len(last) - len(last.lstrip())]
            source.insert(start, f"{indent}{comment}\n")
