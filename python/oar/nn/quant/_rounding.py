"""Numbers on the grid of a quantised format, and back."""

from __future__ import annotations

from oar._C import Tensor, ops

__all__ = ["along_axis", "away_from_zero", "fake_quantized", "largest_of", "pass_through", "per_group"]

# The largest finite numbers of 8-bit floats, by bits of exponent and mantissa.
_FLOATS = {(4, 3): (448, "float8_e4m3fn"), (5, 2): (57344, "float8_e5m2")}


def away_from_zero(x: Tensor) -> Tensor:
    """The nearest integers; halves go away from zero."""
    return ops.sign(x) * ops.floor(ops.abs(x) + 0.5)


def largest_of(bit_length: int | tuple[int, int]) -> tuple[int, str | None]:
    """The largest number of a format, and the dtype if it is a float.

    Args:
        bit_length: the bits of a signed integer, or those of the exponent and of the mantissa of a float.
    """
    if isinstance(bit_length, tuple):
        if bit_length not in _FLOATS:
            raise NotImplementedError(
                f"[quantization] bits are {bit_length}. Pass (4, 3) for float8_e4m3, (5, 2) for float8_e5m2, or a number of bits."
            )
        return _FLOATS[bit_length]
    if not 2 <= bit_length <= 24:
        raise ValueError(f"[quantization] bit_length is {bit_length}; it can be from 2 to 24.")
    return (1 << (bit_length - 1)) - 1, None


def along_axis(scale: Tensor, x: Tensor, axis: int) -> Tensor:
    """A scale for each index of an axis, in a shape that broadcasts with x. -1: one scale for all of x."""
    if axis < 0:
        return scale
    return ops.reshape(scale, [-1 if at == axis else 1 for at in range(x.ndim)])


def per_group(scale: Tensor, group_size: int) -> Tensor:
    """Scales of groups of rows, repeated for each row."""
    return ops.repeat_interleave(scale, group_size, 0)


def pass_through(quantized: Tensor, x: Tensor) -> Tensor:
    """The first tensor, with the derivative 1 by x: rounding has none of its own."""
    return quantized.detach() + (x - x.detach())


def fake_quantized(x: Tensor, scale: Tensor, largest: int) -> Tensor:
    """x rounded to integers from -largest to largest, which stand for -scale to scale, and back to floats."""
    steps = ops.clip(away_from_zero(x / scale * largest), -largest, largest)
    return pass_through(steps * scale / largest, x)
