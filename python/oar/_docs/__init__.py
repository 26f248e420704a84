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


def _type_text(parameter: dict) -> str:
    """``int[]?`` of a schema in words."""
    words = {"shape": "list of ints", "Scalar": "number"}.get(parameter["type"], parameter["type"])
    if parameter["list"]:
        words = f"list of {words}s" + (" or int" if parameter["type"] == "int" else "")
    return words + (" or None" if parameter["optional"] else "")


def _argument_lines(op: str, base: str, family: str, parameters: list[dict], in_place: bool) -> list[str]:
    lines = []
    explain = _meaning if family != "user" else lambda *_: ""  # names of users may mean anything
    for p in parameters:
        name, default = p["name"], p["default"]
        type_text = _type_text(p) + ("" if default is None else f", default {default}")
        meaning = "the tensor to change." if p["written"] and in_place else explain(op, base, name, p["list"])
        lines += _wrapped(f"{name} ({type_text}): {meaning}".removesuffix(": "), "    ", "        ")
    return lines


def _returns(results: list[dict]) -> str:
    if any(r["written"] for r in results):
        return "the changed tensor."
    if len(results) == 1:
        return "a list of tensors." if results[0]["list"] else "a tensor."
    return f"a tuple: {', '.join(r['name'] for r in results)}."


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + (" or " if words[1:] else "") + words[-1]


def op_doc(op: str, base: str, family: str, brief: str, schema: str, dtypes: str, parameters: list[dict],
           results: list[dict]) -> str:
    """The docstring of an op. ``base`` is the op that an in-place form was derived from, else the op itself."""
    lines = _wrapped(brief if base == op else f"In place: {brief}")
    if dtypes:
        lines += ["", f"Takes {_listed(dtypes.split())} tensors."]
    written = any(r["written"] for r in results)
    if parameters:
        lines += ["", "Args:", *_argument_lines(op, base, family, parameters, written)]
        if len(results) == 1 and not written and not results[0]["list"]:
            lines.append("    out: a tensor to write to, or None.")
    lines += ["", "Returns:", f"    {_returns(results)}"]
    example = examples_of(family).get(op)
    if example:
        lines += ["", "Examples:", *(f"    {line}".rstrip() for line in example.splitlines())]
    return "\n".join([*lines, "", f"Schema: {schema}"]).lstrip()
