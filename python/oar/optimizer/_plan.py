"""Which parameters are updated together.

A step is one multi-tensor op per *bucket*. Parameters share a bucket when everything the op takes once for
all of them agrees: options of the parameter group, learning-rate factor, weight decay, dtype, and the
tensor that counts their steps. The buckets stay the same from step to step unless another set of
parameters has gradients, so they are built once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from oar._C import Tensor
from oar.framework.parameter import dtype_name
from oar.regularizer import L2Decay

_HALF = ("float16", "bfloat16")


class Bucket:
    """Parameters for one op, with everything about them that is fixed between steps."""

    __slots__ = ("params", "positions", "options", "factor", "decay", "regularizer", "half", "master", "state", "extra")

    def __init__(self, options: dict[str, Any], factor: float, decay: float, regularizer: Any, half: bool) -> None:
        self.params: list[Tensor] = []
        self.positions: list[int] = []
        self.options = options
        self.factor = factor
        self.decay = decay
        self.regularizer = regularizer
        self.half = half  # kept in a 16-bit float
        self.master: list[Tensor] | None = None
        self.state: dict[str, list[Tensor]] = {}
        self.extra: Any = None


def decay_of(param: Tensor, group_decay: Any, fused_l2: bool) -> tuple[float, Any]:
    """The weight decay of a parameter: a coefficient for the op, or a regularizer to call before it.

    A parameter's own regularizer takes precedence over that of its group.
    """
    regularizer = getattr(param, "regularizer", None)
    if regularizer is None:
        regularizer = group_decay
    if regularizer is None:
        return 0.0, None
    if isinstance(regularizer, (int, float)):
        regularizer = L2Decay(float(regularizer))
    if fused_l2 and type(regularizer) is L2Decay:
        return float(regularizer._coeff), None
    return 0.0, regularizer


def is_half(param: Tensor) -> bool:
    """Whether a parameter is kept in a 16-bit float."""
    return dtype_name(param.dtype) in _HALF


def number_dtype(param: Tensor) -> str:
    """The dtype of the single numbers that the update of a parameter works with, such as the learning rate."""
    return "float64" if dtype_name(param.dtype) == "float64" else "float32"


def single(coefficient: float) -> float:
    """A coefficient rounded to float32, as Paddle's updates take it in float64 too: so the curves of both agree.

    Veltkamp's splitting keeps 24 of the 53 bits. It is plain arithmetic, which a captured step may contain.
    """
    scaled = coefficient * (2.0**29 + 1.0)
    return scaled - (scaled - coefficient)


def singles(options: dict[str, Any]) -> tuple[float, float, float]:
    """Both betas and epsilon, rounded like that."""
    return single(options["beta1"]), single(options["beta2"]), single(options["epsilon"])


def build(
    members: list[tuple[int, Tensor, dict[str, Any], float]],
    describe: Callable[[Tensor, dict[str, Any]], tuple[float, Any, Hashable]],
) -> list[Bucket]:
    """Sort ``(position, parameter, group, factor)`` into buckets.

    ``describe`` returns a parameter's fused decay, its regularizer, and whatever else distinguishes buckets.
    """
    buckets: dict[Hashable, Bucket] = {}
    for position, param, options, factor in members:
        decay, regularizer, extra = describe(param, options)
        coefficient = getattr(regularizer, "_coeff", None)
        kind = (type(regularizer), coefficient) if coefficient is not None else id(regularizer)
        key = (id(options), factor, decay, kind, dtype_name(param.dtype), extra)
        bucket = buckets.get(key)
        if bucket is None:
            bucket = buckets[key] = Bucket(options, factor, decay, regularizer, is_half(param))
            bucket.extra = extra
        bucket.params.append(param)
        bucket.positions.append(position)
    return list(buckets.values())
