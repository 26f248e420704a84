"""Runs a call of the tables; used on both sides, so it imports neither Oar nor a peer."""

from __future__ import annotations

import textwrap


def evaluate(call: str, names: dict) -> list:
    """The results of an expression, or of a script of several lines, which puts them in `result`."""
    if "\n" not in call:
        result = eval(call, dict(names))  # the tables are ours
    else:
        space = dict(names)
        exec(textwrap.dedent(call), space)
        result = space["result"]
    return list(result) if isinstance(result, (list, tuple)) else [result]
