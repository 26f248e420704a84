"""What fused functions share that end by quantising their result."""

from __future__ import annotations

from oar._C import Tensor, ops


def quantised(x: Tensor, scale: float, round_type: float, most: float, least: float) -> Tensor:
    """x * scale * most rounded into [least, most] as int8, if the scale is positive; else x itself."""
    if scale <= 0:
        return x
    steps = ops.cast(x, "float32") * (scale * most)
    away = ops.sign(steps) * ops.floor(ops.abs(steps) + 0.5)
    rounded = ops.round(steps) if round_type == 0 else away
    return ops.cast(ops.clip(rounded, least, most), "int8")


def only_floats(op: str, **given: object) -> None:
    """An error for arguments that quantise inside of the function."""
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise NotImplementedError(
            f"[{op}] {named[0]} is for quantised computation, which needs a GPU. Pass None and floats."
        )
