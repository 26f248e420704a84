"""Calls under the names that Paddle's statistics have for them."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["matches", "older_name", "older_names"]

# One op here, two there: the product, and the sum with the bias.
_WITH_BIAS = {"linear": "matmul", "conv1d": "conv2d", "conv2d": "conv2d", "conv3d": "conv3d"}


@functools.cache
def older_name(name: str) -> str:
    """An op's name in Paddle's lists of ops: ``elementwise_add`` for ``add``."""
    from oar.base import operators

    backward = name.endswith("_grad")
    stem = name.removesuffix("_grad")
    form: Any = operators.find(_WITH_BIAS.get(stem, stem)) or operators.find(stem + "_")
    older = getattr(form, "older", None) or _WITH_BIAS.get(stem, stem)
    return older + "_grad" if backward else older


def older_names(name: str, operands: list[tuple[str, Any]]) -> list[str]:
    """The names of the calls that Paddle makes for one call here."""
    names = [older_name(name)]
    if name.removesuffix("_grad") in _WITH_BIAS and any(operand == "bias" for operand, _ in operands):
        names.append(older_name("add_grad" if name.endswith("_grad") else "add"))
    return names


def matches(name: str, listed: frozenset[str]) -> bool:
    """Whether a call is one of a list of names, of either generation."""
    return name in listed or name.removesuffix("_") in _own(listed)


@functools.cache
def _own(listed: frozenset[str]) -> frozenset[str]:
    """What Oar calls the ops of a list, and their derivatives."""
    from oar.amp.amp_lists import own_names

    forward = {name for name in listed if not name.endswith("_grad")}
    backward = {name.removesuffix("_grad") for name in listed - forward}
    return frozenset(own_names(forward)) | {f"{name}_grad" for name in own_names(backward)}
