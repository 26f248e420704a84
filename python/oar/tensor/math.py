"""The functions on tensors, under another of Paddle's inner paths, and operands that are aligned from the left."""

from __future__ import annotations

from collections.abc import Callable

import oar
from oar._C import Tensor, ops
from oar.tensor import __getattr__ as __getattr__


def aligned(x: Tensor, y: Tensor, axis: int = -1) -> tuple[Tensor, Tensor]:
    """Both operands, of one rank: the axes of the smaller one are aligned with those of the larger one from ``axis`` on.

    -1 aligns them from the right, as broadcasting does.
    """
    if axis == -1 or x.ndim == y.ndim:
        return x, y
    low, high = (x, y) if x.ndim < y.ndim else (y, x)
    behind = high.ndim - axis - low.ndim
    if axis < 0 or behind < 0:
        raise ValueError(f"axis {axis} does not place {low.ndim} axes, of shape {list(low.shape)}, in a tensor of shape "
                         f"{list(high.shape)}. hint: pass 0 to {high.ndim - low.ndim}, or -1 to align from the right.")
    wide = ops.reshape(low, [*low.shape, *[1] * behind])
    return (wide, y) if low is x else (x, wide)


def _with_axis(operation: Callable[[Tensor, Tensor], Tensor]) -> Callable:
    def function(x: Tensor, y: Tensor, axis: int = -1, name: str | None = None) -> Tensor:
        return operation(*aligned(x, y, axis))

    function.__doc__ = f"``{operation.__name__}`` of operands that ``aligned`` has placed."
    return function


_add_with_axis, _subtract_with_axis, _multiply_with_axis, _divide_with_axis = map(
    _with_axis, (oar.add, oar.subtract, oar.multiply, oar.divide)
)
