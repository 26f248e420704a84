"""Ops under their older names: inputs by position, then attributes as pairs of a name and a value.

``_legacy_C_ops.matmul_v2(x, y, "trans_x", True)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar.base import operators


def _positional(form: operators.Form) -> Callable:
    def function(*args: Any) -> Any:
        first = next((i for i, arg in enumerate(args) if isinstance(arg, str)), len(args))
        inputs, pairs = args[:first], args[first:]
        if len(pairs) % 2:
            raise TypeError(f"[{form.older}] attributes are pairs of a name and a value, not {pairs}.")
        given = {a.name: value for a, value in zip(form.arguments, inputs)}
        return form.call(given | form.of_slots({}, dict(zip(pairs[::2], pairs[1::2]))))

    function.__name__ = form.older
    return function


def __getattr__(name: str) -> Callable:
    if not name.startswith("__"):
        form = operators.find_older(name)
        if form is not None:
            globals()[name] = made = _positional(form)
            return made
    raise AttributeError(f"module {__name__!r} has no op {name!r}.")
