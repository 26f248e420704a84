"""Interpolation between points: linear, cubic splines and monotone cubics."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.science._state import readable

__all__ = ["CubicSpline", "PchipInterpolator", "interp"]


def _points(x: Any, y: Any, least: int, owner: str) -> tuple[Tensor, Tensor]:
    y = y if isinstance(y, Tensor) else oar.to_tensor(y)
    if not (y.is_floating_point() or y.is_complex()):
        raise TypeError(f"[{owner}] the values must be floats or complex, but are {y.dtype}.")
    real = ops.real(y).dtype if y.is_complex() else y.dtype
    x = ops.cast(x, real) if isinstance(x, Tensor) else oar.to_tensor(x, dtype=real)
    if x.ndim != 1 or y.ndim < 1 or x.shape[0] != y.shape[0]:
        raise ValueError(f"[{owner}] the points must be a vector with as many entries as the values have along axis 0, but the "
                         f"shapes are {list(x.shape)} and {list(y.shape)}.")
    if x.shape[0] < least:
        raise ValueError(f"[{owner}] at least {least} points are needed, but there are {x.shape[0]}.")
    if readable(x) and not bool((x[1:] > x[:-1]).all()):
        raise ValueError(f"[{owner}] the points must be strictly increasing. Sort them, and remove those that are equal.")
    return x, y


def _column(v: Tensor, like: Tensor) -> Tensor:
    """A vector as something that multiplies like, which has more axes and may be complex."""
    return ops.cast(ops.reshape(v, [*v.shape, *[1] * (like.ndim - 1)]), like.dtype)


def interp(x: Tensor, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Values on the straight lines between the points (xp, fp).

    Differentiable with respect to x, xp and fp.

    Args:
        x: where to interpolate, of any shape.
        xp: the points, strictly increasing.
        fp: the value at each, or a tensor for each along axis 0.
        left: the value before the first point; fp[0] if None.
        right: the value after the last point; fp[-1] if None.

    Returns:
        the values, of the shape of x followed by that of one value.

    Examples:
        >>> import oar
        >>> oar.science.interp(oar.to_tensor([0.5, 1.5, 9.0]), [0.0, 1.0, 2.0], [0.0, 10.0, 0.0]).tolist()
        [5.0, 5.0, 0.0]
    """
    xp, fp = _points(xp, fp, 2, "interp")
    x = ops.cast(x, xp.dtype) if isinstance(x, Tensor) else oar.to_tensor(x, dtype=xp.dtype)
    shape = list(x.shape)
    flat = ops.reshape(x, [-1])
    i = _interval(xp, flat)
    x0, x1 = ops.gather(xp, i), ops.gather(xp, i + 1)
    y0, y1 = ops.gather(fp, i), ops.gather(fp, i + 1)
    inside = ops.minimum(ops.maximum(flat, xp[0]), xp[-1])
    made = y0 + (y1 - y0) * _column((inside - x0) / (x1 - x0), y0)
    for value, out in ((left, flat < xp[0]), (right, flat > xp[-1])):
        if value is not None:
            given = ops.cast(value if isinstance(value, Tensor) else oar.to_tensor(value), made.dtype)
            mask = ops.reshape(out, [*out.shape, *[1] * (made.ndim - 1)])
            made = ops.where(mask, ops.broadcast_to(given, list(made.shape)), made)
    return ops.reshape(made, [*shape, *fp.shape[1:]])


def _interval(xp: Tensor, x: Tensor) -> Tensor:
    """The index of the piece that each x is in; the outer pieces reach to infinity."""
    with oar.no_grad():
        found = ops.searchsorted(xp, x, right=True) - 1
        return ops.clip(found, 0, xp.shape[0] - 2)


class _Hermite:
    """Cubic pieces through points with given slopes."""

    def __init__(self, x: Tensor, y: Tensor, slopes: Tensor, extrapolate: bool) -> None:
        self.x, self.y, self.slopes, self._extrapolate = x, y, slopes, extrapolate
        h = _column(x[1:] - x[:-1], y)
        rise = (y[1:] - y[:-1]) / h
        d0, d1 = slopes[:-1], slopes[1:]
        # y0 + s (d0 + s (second + s third)), s the distance from the left end
        self._pieces = [y[:-1], d0, (3 * rise - 2 * d0 - d1) / h, (d0 + d1 - 2 * rise) / h**2]

    def __call__(self, x: Any, nu: int = 0) -> Tensor:
        """The value at x, of any shape, or the derivative of order nu."""
        if not isinstance(nu, int) or nu < 0:
            raise ValueError(f"[{type(self).__name__}] nu must be an integer of at least 0, but is {nu!r}.")
        x = ops.cast(x, self.x.dtype) if isinstance(x, Tensor) else oar.to_tensor(x, dtype=self.x.dtype)
        flat = self._inside(ops.reshape(x, [-1]))
        i = _interval(self.x, flat)
        parts = [ops.gather(piece, i) for piece in self._pieces]
        for _ in range(nu):
            parts = [part * float(k) for k, part in enumerate(parts)][1:] or [ops.zeros_like(parts[0])]
        s = _column(flat - ops.gather(self.x, i), self.y)
        made = parts[-1]
        for part in parts[-2::-1]:
            made = part + made * s
        if not self._extrapolate:
            out = ops.logical_or(flat < self.x[0], flat > self.x[-1])
            mask = ops.reshape(out, [*out.shape, *[1] * (made.ndim - 1)])
            made = ops.where(mask, ops.full_like(made, float("nan")), made)
        return ops.reshape(made, [*x.shape, *self.y.shape[1:]])

    def _inside(self, x: Tensor) -> Tensor:
        """Where to evaluate for x."""
        return x

    def derivative(self, x: Any, nu: int = 1) -> Tensor:
        """The derivative of order nu at x."""
        return self(x, nu)

    def integrate(self, a: float, b: float) -> Tensor:
        """The integral from a to b, within the points."""
        if readable(self.x):
            low, high = float(self.x[0]), float(self.x[-1])
            if not (low <= a <= high and low <= b <= high):
                raise ValueError(f"[{type(self).__name__}] {a} to {b} is not within the points, which are from {low} to {high}.")
        if a > b:
            return -self.integrate(b, a)
        left = ops.clip(self.x[:-1], a, b) - self.x[:-1]
        right = ops.clip(self.x[1:], a, b) - self.x[:-1]
        total = ops.zeros_like(self.y[0])
        for k, piece in enumerate(self._pieces, 1):
            total = total + ops.sum(piece * _column((right**k - left**k) / k, self.y), 0)
        return total


class CubicSpline(_Hermite):
    """The twice continuously differentiable curve of cubic pieces through points.

    Differentiable with respect to the points, the values and where it is evaluated. Call it with a tensor; ``nu`` asks for
    a derivative of the curve.

    Args:
        x: the points, strictly increasing.
        y: the value at each, or a tensor for each along axis 0; complex is allowed.
        bc_type: what holds at the ends. "not-a-knot": the outer two pieces are one cubic; "natural": no second derivative;
            "clamped": no first derivative; "periodic": value, first and second derivative are the same at both, and the
            curve repeats outside of the points.
        extrapolate: whether the outer pieces continue outside of the points; else the result there is NaN.

    Examples:
        >>> import oar
        >>> x = oar.linspace(0.0, 3.0, 7, dtype='float64')
        >>> curve = oar.science.CubicSpline(x, x ** 3)
        >>> round(curve(1.1).item(), 6), round(curve(1.1, nu=1).item(), 6)
        (1.331, 3.63)
    """

    def __init__(self, x: Any, y: Any, bc_type: str = "not-a-knot", extrapolate: bool = True) -> None:
        if bc_type not in ("not-a-knot", "natural", "clamped", "periodic"):
            raise ValueError(f"[CubicSpline] bc_type is {bc_type!r}, but must be 'not-a-knot', 'natural', 'clamped' or "
                             "'periodic'.")
        x, y = _points(x, y, {"not-a-knot": 4, "periodic": 3}.get(bc_type, 2), "CubicSpline")
        if bc_type == "periodic" and readable(y) and not bool((ops.abs(y[0] - y[-1]) <= 1e-6 * (1 + ops.abs(y[0]))).all()):
            raise ValueError("[CubicSpline] with bc_type='periodic' the first and the last value must be equal.")
        super().__init__(x, y, _spline_slopes(x, y, bc_type), extrapolate)
        self._periodic = bc_type == "periodic" and extrapolate

    def _inside(self, x: Tensor) -> Tensor:
        if not self._periodic:
            return x
        return self.x[0] + ops.remainder(x - self.x[0], self.x[-1] - self.x[0])


def _spline_slopes(x: Tensor, y: Tensor, bc_type: str) -> Tensor:
    """The slopes at the points, from one equation per point."""
    n = x.shape[0]
    h = x[1:] - x[:-1]
    rise = (y[1:] - y[:-1]) / _column(h, y)
    zero = ops.zeros([1], x.dtype)

    def placed(values: Tensor, first: int, offset: int) -> Tensor:
        """Values in the rows from first on, each at its row plus offset."""
        rows = [zero] * first + [values] + [zero] * (n - first - values.shape[0])
        eye = oar.eye(n, dtype=x.dtype)
        return ops.concat(rows, 0)[:, None] * ops.roll(eye, offset, 1)

    # Equal second derivatives on both sides of an inner point.
    matrix = placed(h[1:], 1, -1) + placed(2 * (h[1:] + h[:-1]), 1, 0) + placed(h[:-1], 1, 1)
    inner = 3 * (_column(h[1:], y) * rise[:-1] + _column(h[:-1], y) * rise[1:])
    one = ops.ones([1], x.dtype)
    if bc_type == "clamped":
        matrix = matrix + placed(one, 0, 0) + placed(one, n - 1, 0)
        first = last = ops.zeros_like(y[:1])
    elif bc_type == "natural":
        matrix = matrix + placed(2 * one, 0, 0) + placed(one, 0, 1) + placed(2 * one, n - 1, 0) + placed(one, n - 1, -1)
        first, last = 3 * rise[:1], 3 * rise[-1:]
    elif bc_type == "periodic":
        a, b = h[-1:], h[:1]
        matrix = (matrix + placed(2 * (a + b), 0, 0) + placed(a, 0, 1) + placed(b, 0, n - 2)
                  + placed(one, n - 1, 0) - placed(one, n - 1, 1 - n))
        first = 3 * (_column(b, y) * rise[-1:] + _column(a, y) * rise[:1])
        last = ops.zeros_like(y[:1])
    else:
        matrix = (matrix + placed(h[1:2], 0, 0) + placed(h[:1] + h[1:2], 0, 1)
                  + placed(h[-2:-1], n - 1, 0) + placed(h[-1:] + h[-2:-1], n - 1, -1))
        first = _end_rise(h[:1], h[1:2], rise[:1], rise[1:2], y)
        last = _end_rise(h[-1:], h[-2:-1], rise[-1:], rise[-2:-1], y)
    right = ops.concat([first, inner, last], 0)
    flat = ops.solve(ops.cast(matrix, y.dtype), ops.reshape(right, [n, -1]))
    return ops.reshape(flat, list(y.shape))


def _end_rise(outer: Tensor, inner: Tensor, outer_rise: Tensor, inner_rise: Tensor, y: Tensor) -> Tensor:
    """The right side of the equation that the third derivative does not change at the point next to an end."""
    a, b = _column(outer, y), _column(inner, y)
    return ((a + 2 * (a + b)) * b * outer_rise + a**2 * inner_rise) / (a + b)


class PchipInterpolator(_Hermite):
    """Cubic pieces through points that never overshoot: where the values increase, so does the curve.

    Differentiable with respect to the points, the values and where it is evaluated (Fritsch and Butland 1984).

    Args:
        x: the points, strictly increasing.
        y: the real value at each, or a tensor for each along axis 0.
        extrapolate: whether the outer pieces continue outside of the points; else the result there is NaN.

    Examples:
        >>> import oar
        >>> curve = oar.science.PchipInterpolator([0.0, 1.0, 2.0, 3.0], oar.to_tensor([0.0, 0.0, 1.0, 1.0]))
        >>> curve([0.5, 1.5, 2.5]).tolist()
        [0.0, 0.5, 1.0]
    """

    def __init__(self, x: Any, y: Any, extrapolate: bool = True) -> None:
        x, y = _points(x, y, 2, "PchipInterpolator")
        if y.is_complex():
            raise TypeError("[PchipInterpolator] complex values have no order. Interpolate the real and imaginary parts.")
        h = _column(x[1:] - x[:-1], y)
        rise = (y[1:] - y[:-1]) / h
        if x.shape[0] == 2:
            slopes = ops.concat([rise, rise], 0)
        else:
            first, last = _end_slope(h[:1], h[1:2], rise[:1], rise[1:2]), _end_slope(h[-1:], h[-2:-1], rise[-1:], rise[-2:-1])
            slopes = ops.concat([first, _inner_slopes(h, rise), last], 0)
        super().__init__(x, y, slopes, extrapolate)


def _inner_slopes(h: Tensor, rise: Tensor) -> Tensor:
    """The weighted harmonic mean of the rises on both sides; zero at an extremum."""
    before, after = rise[:-1], rise[1:]
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    monotone = before * after > 0
    one = ops.ones_like(before)
    mean = (w1 + w2) / (w1 / ops.where(monotone, before, one) + w2 / ops.where(monotone, after, one))
    return ops.where(monotone, mean, ops.zeros_like(mean))


def _end_slope(h0: Tensor, h1: Tensor, rise0: Tensor, rise1: Tensor) -> Tensor:
    """The slope of the parabola through three points at the first, kept within what is monotone."""
    slope = ((2 * h0 + h1) * rise0 - h0 * rise1) / (h0 + h1)
    steep = ops.logical_and(ops.sign(rise0) != ops.sign(rise1), ops.abs(slope) > 3 * ops.abs(rise0))
    slope = ops.where(steep, 3 * rise0, slope)
    return ops.where(ops.sign(slope) != ops.sign(rise0), ops.zeros_like(slope), slope)
