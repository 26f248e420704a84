"""Functions for inference that are captured."""

from __future__ import annotations

from typing import Any

__all__ = ["is_inference_mode"]


def is_inference_mode(function: Any) -> bool:
    """Whether a function or a layer was given to ``inference``, which Oar does not have: False.

    Args:
        function: the function or layer.

    Examples:
        >>> import oar
        >>> oar.incubate.jit.is_inference_mode(oar.nn.Linear(2, 2))
        False
    """
    return False
