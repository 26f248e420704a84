"""State dicts as they are saved: pieces of tensors and plain values, by name."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from oar._C import Tensor
from oar._lazy import np
from oar.distributed.checkpoint.sharded_weight import ShardedWeight, whole

__all__ = ["flattened"]

Put = Callable[[Any], None]


def flattened(function: str, state_dict: Any) -> tuple[dict[str, ShardedWeight], dict[str, tuple[Any, Put]]]:
    """The pieces of a state dict, and the other values with functions that replace them. Names of nested dicts are joined by dots.

    A tensor that several processes divide describes its piece itself: it has a method ``sharded_weight(key)``.
    """
    if not isinstance(state_dict, dict):
        raise TypeError(f"[{function}] state_dict must be a dict, not {type(state_dict).__name__}.")
    pieces: dict[str, ShardedWeight] = {}
    values: dict[str, tuple[Any, Put]] = {}

    def visit(prefix: str, container: dict[Any, Any]) -> None:
        for key, value in container.items():
            name = f"{prefix}{key}"
            if name in pieces or name in values:
                raise ValueError(f"[{function}] two values of the state dict have the name {name!r}: names of nested dicts are joined by "
                                 "dots. hint: rename one.")
            if isinstance(value, dict):
                visit(f"{name}.", value)
            elif isinstance(value, ShardedWeight):
                pieces[name] = value
            elif isinstance(value, Tensor):
                own = getattr(value, "sharded_weight", None)
                pieces[name] = whole(name, value) if own is None else own(name)
            else:
                values[name] = value, functools.partial(container.__setitem__, key)

    visit("", state_dict)
    return pieces, values


def as_json(function: str, name: str, value: Any) -> Any:
    """A value as the list of a checkpoint has it."""
    if isinstance(value, np.ndarray):
        value = {"array": value.tolist(), "dtype": value.dtype.name}
    elif isinstance(value, np.generic):
        value = value.item()
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        raise TypeError(f"[{function}] {name} is a {type(value).__name__}, which cannot be saved. hint: pass tensors, numbers, strings, "
                        "and lists and dicts of them.") from None
    return value


def from_json(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    return value
