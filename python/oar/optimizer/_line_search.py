"""A line search for the strong Wolfe conditions, after Nocedal and Wright, algorithms 3.5 and 3.6."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor

# Sufficient decrease, and how flat the slope must become.
_DECREASE, _FLAT = 1e-4, 0.9


class _Point:
    """A length along the line, with the loss, the gradient and the slope there."""

    __slots__ = ("length", "loss", "grad", "slope")

    def __init__(self, length: float, loss: float, grad: Tensor, slope: float) -> None:
        self.length, self.loss, self.grad, self.slope = length, loss, grad, slope


def _cubic_minimum(a: _Point, b: _Point, low: float, high: float) -> float:
    """Where the cubic through two points with their slopes is smallest, within bounds."""
    if a.length > b.length:
        a, b = b, a
    middle = (low + high) / 2
    if a.length == b.length:
        return middle
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return middle
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    if below == 0:
        return middle
    return min(max(b.length - (b.length - a.length) * ((b.slope + d2 - d1) / below), low), high)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    length: float,
    direction: Tensor,
    loss: float,
    grad: Tensor,
    slope: float,
    max_tries: int = 25,
    tolerance: float = 1e-9,
) -> tuple[float, Tensor, float]:
    """Loss, gradient and length of a step that lowers the loss enough and flattens the slope.

    ``evaluate`` gives loss and gradient at a length along ``direction``; ``loss``, ``grad`` and ``slope`` are those
    at the start.
    """
    start = _Point(0.0, loss, grad, slope)
    size = float(oar.abs(direction).max())

    def at(where: float) -> _Point:
        here, grad_here = evaluate(where)
        return _Point(where, here, grad_here, float((grad_here * direction).sum()))

    def lowers(point: _Point) -> bool:
        return point.loss <= loss + _DECREASE * point.length * slope

    def flattens(point: _Point) -> bool:
        return abs(point.slope) <= -_FLAT * slope

    before, point, tries = start, at(length), 1
    while tries < max_tries:
        if not lowers(point) or (tries > 1 and point.loss >= before.loss):
            break
        if flattens(point):
            return point.loss, point.grad, point.length
        if point.slope >= 0:
            break
        least, most = point.length + 0.01 * (point.length - before.length), point.length * 10
        before, point = point, at(_cubic_minimum(before, point, least, most))
        tries += 1
    else:
        best = min((start, before, point), key=lambda p: p.loss)
        return best.loss, best.grad, best.length
    low, high = (before, point) if before.loss <= point.loss else (point, before)
    return _zoom(at, low, high, lowers, flattens, size, max_tries - tries, tolerance)


def _zoom(
    at: Callable[[float], _Point], low: _Point, high: _Point, lowers: Any, flattens: Any, size: float, tries: int,
    tolerance: float,
) -> tuple[float, Tensor, float]:  # fmt: skip
    """Narrow the bracket between a good point and another until a point meets both conditions."""
    stuck = False
    for _ in range(tries):
        left, right = sorted((low.length, high.length))
        if (right - left) * size < tolerance:
            break
        where = _cubic_minimum(low, high, left, right)
        # Too close to an end twice in a row: step in by a tenth.
        edge = 0.1 * (right - left)
        if min(right - where, where - left) < edge:
            if stuck or where >= right or where <= left:
                where = right - edge if abs(where - right) < abs(where - left) else left + edge
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(where)
        if not lowers(point) or point.loss >= low.loss:
            high = point
            continue
        if flattens(point):
            return point.loss, point.grad, point.length
        if point.slope * (high.length - low.length) >= 0:
            high = low
        low = point
    return low.loss, low.grad, low.length
