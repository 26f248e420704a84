"""Readable signatures of ops, made from their schemas when somebody asks."""

from __future__ import annotations

import inspect
import re

_PARAMETER = re.compile(r"^(?P<type>\S+) (?P<name>\w+)(?: = (?P<default>.+))?$")


def _split(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "[(":
            depth += 1
        elif c in "])":
            depth -= 1
        if c == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    return [*parts, current.strip()] if current.strip() else parts


def _default(text: str | None):
    if text is None:
        return inspect.Parameter.empty
    try:
        return eval(text, {"__builtins__": {}}, {})  # a literal of our own records
    except NameError:
        return text  # a dtype's name


def signature_of(schema: str) -> inspect.Signature:
    inner = schema[schema.index("(") + 1:schema.rindex(") ->")]
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters, optional = [], False
    for part in _split(inner):
        m = _PARAMETER.match(part)
        default = _default(m["default"])
        # Python wants defaults from the first one on; a required argument behind one is still required.
        if default is inspect.Parameter.empty and optional:
            default = ...
        optional |= default is not inspect.Parameter.empty
        parameters.append(inspect.Parameter(m["name"], kinds, default=default))
    parameters.append(inspect.Parameter("name", kinds, default=None))
    return inspect.Signature(parameters)
