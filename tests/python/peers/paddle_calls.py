"""An op of ours as a call of Paddle's public function."""

from __future__ import annotations

import inspect

from peers.paddle_table import PADDLE


def public_name(record) -> str | None:
    """Where the record says that users find it, under Paddle's name."""
    places = sorted(record.python.split(), key=lambda place: place == "Tensor")
    if not places:
        return None
    return f"{places[0].replace('oar', 'paddle', 1).replace('Tensor', 'paddle.Tensor')}.{record.name}"


def expression(record, arguments: dict) -> str:
    """By the table, or by the public name with arguments by theirs; those that have their defaults are left out."""
    if record.name in PADDLE:
        return PADDLE[record.name]
    if not record.python:
        raise LookupError(f"Paddle has no function for {record.name}")
    defaults = {p.name: p.default for p in inspect.signature(record.function).parameters.values()}
    given = [name for name, value in arguments.items() if _differs(value, defaults[name])]
    return f"{public_name(record)}({', '.join(f'{name}={name}' for name in given)})"


def _differs(value, default) -> bool:
    if isinstance(value, list) and not isinstance(default, (list, tuple)) and len(value) == 1:
        value = value[0]
    return type(value).__name__ == "Tensor" or value != default
