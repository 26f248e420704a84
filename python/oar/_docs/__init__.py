"""The docstrings of ops: assembled from the op's record on request.

The record gives the description, the arguments and the results. Two kinds of text files in this folder add what a
record does not hold: ``arguments.txt`` says what an argument of a given name means, and ``examples/<family>.txt`` has
one example per public op, with its results.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

_FOLDER = Path(__file__).parent
_WIDTH = 100


@functools.cache
def _arguments() -> dict[str, str]:
    lines = (_FOLDER / "arguments.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


@functools.cache
def examples_of(family: str) -> dict[str, str]:
    """The examples of a family's ops: the sections of its file, by the name in their heading."""
    file = _FOLDER / "examples" / f"{family}.txt"
    if not file.exists():
        return {}
    parts = re.split(r"^## (\w+)\n", file.read_text(), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def _meaning(op: str, base: str, argument: str, many: bool) -> str:
    known = _arguments()
    keys = (f"{op}.{argument}", f"{base}.{argument}", f"{argument}[]" if many else argument, argument)
    return next((known[key] for key in keys if key in known), "")


def _wrapped(text: str, indent: str = "", further: str = "") -> list[str]:
    import textwrap

    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=further)


def _type_text(kind: str) -> str:
    """``int[]?`` of a schema in words."""
    kind = re.sub(r"\(\w!?\)", "", kind)
    element, listed, optional = kind.rstrip("?").removesuffix("[]").rstrip("?"), "[]" in kind, kind.endswith("?")
    words = {"shape": "list of ints", "Scalar": "number"}.get(element, element)
    if listed:
        words = f"list of {words}s" + (" or int" if element == "int" else "")
    return words + (" or None" if optional else "")


def _argument_lines(op: str, base: str, family: str, schema: str, parameters: list) -> list[str]:
    lines = []
    in_place = "!" in schema.rsplit("->", 1)[1]
    explain = _meaning if family != "user" else lambda *_: ""  # names of users may mean anything
    for kind, name, default in parameters:
        type_text = _type_text(kind) + ("" if default is None else f", default {default}")
        meaning = "the tensor to change." if "!" in kind and in_place else explain(op, base, name, "[]" in kind)
        lines += _wrapped(f"{name} ({type_text}): {meaning}".removesuffix(": "), "    ", "        ")
    return lines


def _returns(schema: str) -> str:
    results = schema.rsplit("->", 1)[1].strip()
    if "!" in results:
        return "the changed tensor."
    results = re.sub(r"\(\w\)", "", results)
    if not results.startswith("("):
        return "a list of tensors." if results.endswith("[]") else "a tensor."
    return "a tuple: " + ", ".join(part.split()[-1] for part in results[1:-1].split(",")) + "."


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + (" or " if words[1:] else "") + words[-1]


def op_doc(op: str, base: str, family: str, brief: str, schema: str, dtypes: str, parameters: list) -> str:
    """The docstring of an op. ``base`` is the op that an in-place form was derived from, else the op itself."""
    lines = _wrapped(brief if base == op else f"In place: {brief}")
    if dtypes:
        lines += ["", f"Takes {_listed(dtypes.split())} tensors."]
    if parameters:
        lines += ["", "Args:", *_argument_lines(op, base, family, schema, parameters)]
    lines += ["", "Returns:", f"    {_returns(schema)}"]
    example = examples_of(family).get(op)
    if example:
        lines += ["", "Examples:", *(f"    {line}".rstrip() for line in example.splitlines())]
    return "\n".join([*lines, "", f"Schema: {schema}"]).lstrip()
