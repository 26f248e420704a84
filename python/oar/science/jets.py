"""Derivatives of high order in one variable, at a cost that grows with the square of the order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oar import _C
from oar._C import Tensor, ops

__all__ = ["jet", "taylor"]


def _listed(value: Any, owner: str, name: str) -> list[Tensor]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    for one in found:
        if not isinstance(one, Tensor):
            raise TypeError(f"[{owner}] {name} must be a tensor or a list of tensors, but holds {type(one).__name__}.")
    return found


def _expanded(func, coefficients: list[list[Tensor | None]], order: int) -> tuple[list[list[Tensor]], bool]:
    single = True

    def call(inputs):
        nonlocal single
        result = func(*inputs)
        single = isinstance(result, Tensor)
        return [result] if single else list(result)

    return _C.taylor(call, coefficients, order), single


def _check_order(order: Any, owner: str) -> None:
    if not isinstance(order, int) or isinstance(order, bool) or order < 0:
        raise ValueError(f"[{owner}] order must be an integer of at least 0, but is {order!r}.")


def taylor(func, xs: Any, order: int, v: Any = None) -> Any:
    """The derivatives of ``func(xs + t * v)`` by t at t = 0, from order 0 to ``order``.

    With ``v`` of ones and an elementwise func these are its derivatives. Power series are propagated through func once, so
    the cost grows with the square of the order; nested gradients cost a factor per order. The results are
    differentiable themselves, and ``oar.jit.to_static`` captures the call.

    Args:
        func: a function of tensors that returns a tensor or several.
        xs: the input, or a list of inputs.
        order: the highest order.
        v: the direction, of the shapes of xs; ones if None.

    Returns:
        a list of order + 1 tensors; a tuple of such lists if func returns several tensors.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([0.0], dtype='float64')
        >>> [d.item() for d in oar.science.taylor(lambda x: oar.exp(2 * x), x, 4)]
        [1.0, 2.0, 4.0, 8.0, 16.0]
    """
    _check_order(order, "taylor")
    inputs = _listed(xs, "taylor", "xs")
    directions = [ops.ones_like(x) for x in inputs] if v is None else _listed(v, "taylor", "v")
    if len(directions) != len(inputs):
        raise ValueError(f"[taylor] there are {len(inputs)} inputs, but {len(directions)} directions.")
    made, single = _expanded(func, [[x, d] for x, d in zip(inputs, directions)], order)
    scaled = [[c * float(math.factorial(k)) if k > 1 else c for k, c in enumerate(one)] for one in made]
    return scaled[0] if single else tuple(scaled)


def jet(func, primals: Sequence[Tensor], series: Sequence[Sequence[Tensor]]) -> tuple[Any, Any]:
    """func at curves: the derivatives of ``func(x(t))`` by t at t = 0 for the derivatives of ``x(t)``.

    Args:
        func: a function of tensors that returns a tensor or several.
        primals: x(0) for each input.
        series: the first, second, ... derivative of x(t) for each input, as many for each.

    Returns:
        func at the primals, and the list of derivatives of the same length; tuples of them if func returns several tensors.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor(0.0, dtype='float64')
        >>> one, zero = oar.ones_like(x), oar.zeros_like(x)
        >>> value, derivatives = oar.science.jet(oar.sin, [x], [[one, zero, zero]])
        >>> value.item(), [d.item() for d in derivatives]
        (0.0, [1.0, 0.0, -1.0])
    """
    inputs = _listed(primals, "jet", "primals")
    if len(series) != len(inputs):
        raise ValueError(f"[jet] there are {len(inputs)} primals, but {len(series)} series.")
    lengths = {len(one) for one in series}
    if len(lengths) > 1:
        raise ValueError(f"[jet] every series must have as many derivatives, but they have {sorted(lengths)}.")
    coefficients: list[list[Tensor | None]] = []
    for x, one in zip(inputs, series):
        coefficients.append([x, *(d / float(math.factorial(k)) if k > 1 else d for k, d in enumerate(one, 1))])
    made, single = _expanded(func, coefficients, lengths.pop() if lengths else 0)
    values = [one[0] for one in made]
    derivatives = [[c * float(math.factorial(k)) if k > 1 else c for k, c in enumerate(one)][1:] for one in made]
    return (values[0], derivatives[0]) if single else (tuple(values), tuple(derivatives))
