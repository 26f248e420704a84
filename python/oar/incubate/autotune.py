"""Wishes about what to tune while a program runs."""

from __future__ import annotations

import json
import warnings
from typing import Any

__all__ = ["set_config"]

_OPTIONS: dict[str, dict[str, Any]] = {
    "kernel": {"enable": bool, "tuning_range": (list, tuple)}, "layout": {"enable": bool},
    "dataloader": {"enable": bool, "tuning_steps": int},
}  # fmt: skip


def set_config(config: dict[str, Any] | str | None = None) -> None:
    """Checks a wish to tune kernels, the layout of data, or the workers of a ``DataLoader``. Oar tunes nothing at run time.

    Oar chooses kernels and layouts by the sizes of their operands, and a ``DataLoader`` keeps its ``num_workers``. Results
    do not depend on it.

    Args:
        config: options by what they are for, ``kernel``, ``layout`` and ``dataloader``; or the name of a JSON file with
            them. A value of the wrong type gives a warning.

    Examples:
        >>> import oar
        >>> oar.incubate.autotune.set_config({'kernel': {'enable': True, 'tuning_range': [1, 5]}})
    """
    if config is None:
        return
    if isinstance(config, str):
        with open(config) as file:
            config = json.load(file)
    if not isinstance(config, dict):
        raise TypeError(f"[set_config] the options must be a dict, or the name of a JSON file with one, not {type(config).__name__}.")
    for part, options in _OPTIONS.items():
        for option, kind in options.items():
            value = config.get(part, {}).get(option)
            if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                wanted = "a list" if isinstance(kind, tuple) else f"of type {kind.__name__}"
                warnings.warn(f"[set_config] {option} of {part} must be {wanted}, not {value!r}; it is ignored.", stacklevel=2)
