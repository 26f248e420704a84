"""Readable signatures of ops, made from their schemas when somebody asks."""

from __future__ import annotations

import inspect


def _default(text: str | None):
    if text is None:
        return inspect.Parameter.empty
    try:
        return eval(text, {"__builtins__": {}}, {})  # a literal of our own records
    except NameError:
        return text  # a dtype's name


def signature_of(schema: list[tuple[str, str, str | None]]) -> inspect.Signature:
    """From the type, the name and the text of the default of each parameter."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters, optional = [], False
    for type_text, name, default_text in schema:
        default = _default(default_text)
        # Python wants defaults from the first one on; a required argument after one is still required.
        if default is inspect.Parameter.empty and optional:
            default = ...
        optional |= default is not inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=type_text))
    parameters.append(inspect.Parameter("name", kind, default=None))
    return inspect.Signature(parameters)
