"""Integrals of functions of one variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import oar
from oar import _C
from oar._C import Tensor, ops
from oar._lazy import np
from oar.science._state import at_least_one

__all__ = ["fixed_quad", "quad"]

# Gauss-Kronrod with 10 and 21 points (QUADPACK): the positive nodes, the weights of 21 points, and those of 10 points
# for every second node.
_NODES = [0.995657163025808080735527280689003, 0.973906528517171720077964012084452, 0.930157491355708226001207180059508,
          0.865063366688984510732096688423493, 0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
          0.562757134668604683339000099272694, 0.433395394129247190799265943165784, 0.294392862701460198131126603103866,
          0.148874338981631210884826001129720, 0.0]
_KRONROD = [0.011694638867371874278064396062192, 0.032558162307964727478818972459390, 0.054755896574351996031381300244580,
            0.075039674810919952767043140916190, 0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
            0.123491976262065851077958109585166, 0.134709217311473325928054001771707, 0.142775938577060080797094273138717,
            0.147739104901338491374841515972068, 0.149445554002916905664936468389821]
_GAUSS = [0.066671344308688137593568809893332, 0.149451349150580593145863397657697, 0.219086362515982043995534934228163,
          0.269266719309996355091226921569469, 0.295524224714752870173815619188769]


def _rule():
    nodes = np.array([-x for x in _NODES] + _NODES[-2::-1])
    kronrod = np.array(_KRONROD + _KRONROD[-2::-1])
    half = np.zeros(11)
    half[1::2] = _GAUSS
    return nodes, kronrod, np.concatenate([half, half[-2::-1]])


# Nodes and weights of Gauss-Legendre quadrature by the number of points.
_LEGENDRE: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}


def _legendre(n: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    def make() -> None:
        nodes, weights = np.polynomial.legendre.leggauss(n)
        _LEGENDRE[n] = tuple(nodes.tolist()), tuple(weights.tolist())

    if n not in _LEGENDRE:
        if _C.is_capturing():
            _C.outside_capture(make)
        else:
            make()
    return _LEGENDRE[n]


def _limit(value: Any, name: str, owner: str) -> Any:
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"[{owner}] {name} is NaN.")
    if isinstance(value, Tensor) and value.size != 1:
        raise ValueError(f"[{owner}] {name} must be one number, but has shape {list(value.shape)}.")
    return ops.reshape(value, []) if isinstance(value, Tensor) else number


def _values(f: Callable, x: Tensor, args, owner: str) -> Tensor:
    y = f(x, *args)
    if not isinstance(y, Tensor) or y.ndim < 1 or y.shape[0] != x.shape[0]:
        got = f"shape {list(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(f"[{owner}] f gets a vector of {x.shape[0]} points and must return one value (or tensor) for each "
                         f"along axis 0, but returned {got}.")
    return y


class _Line:
    """The variable of integration: x itself between finite limits, else a function of one that is in (-1, 1) or (0, 1)."""

    def __init__(self, a: Any, b: Any, dtype: str) -> None:
        self._a, self._b, self._dtype = a, b, dtype
        low, high = float(a), float(b)
        self._infinite = (math.isinf(low), math.isinf(high))
        self.ends = (-1.0, 1.0) if all(self._infinite) else (0.0, 1.0)

    def points(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """x and dx/ds."""
        a, b = self._a, self._b
        if self._infinite == (False, False):
            return a + (b - a) * s, (b - a) + ops.zeros_like(s)
        if self._infinite == (True, True):
            square = s * s
            return s / (1 - square), (1 + square) / (1 - square) ** 2
        if self._infinite[1]:
            return a + s / (1 - s), 1 / (1 - s) ** 2
        return b - (1 - s) / s, 1 / s**2

    def integrals(self, f, args, left, right, weights: list[Any], owner: str) -> list[Tensor]:
        """One integral per interval [left, right] and rule: [intervals, ...]."""
        nodes = _rule()[0]
        half = (right - left) / 2
        s = oar.to_tensor(((left + right) / 2)[:, None] + half[:, None] * nodes).astype(self._dtype)
        x, slope = self.points(ops.reshape(s, [-1]))
        y = _values(f, x, args, owner)
        y = y * ops.reshape(slope, [slope.shape[0], *[1] * (y.ndim - 1)])
        rest = list(y.shape[1:])
        columns = ops.reshape(y, [len(left), len(nodes), -1])
        made = []
        for w in weights:
            scaled = ops.cast(oar.to_tensor(half[:, None] * w).astype(self._dtype), y.dtype)
            made.append(ops.reshape(ops.matmul(ops.unsqueeze(scaled, 1), columns), [len(left), *rest]))
        return made


def quad(f: Callable, a: Any, b: Any, args=(), *, epsabs: float = 1e-10, epsrel: float = 1e-10, limit: int = 500,
         dtype: str = "float64") -> tuple[Tensor, float]:
    """The integral of f from a to b, by adaptive Gauss-Kronrod quadrature with 21 points.

    Intervals with a large error are halved, all of them in one call of f. The result is differentiable with respect to
    what f uses, and to finite limits that are tensors.

    Args:
        f: a function of a vector of points (and args) that returns a value or a tensor for each, along axis 0.
        a: the lower limit: a number, a tensor with one element, or -inf.
        b: the upper limit, or inf.
        args: more arguments for f.
        epsabs: the allowed absolute error.
        epsrel: the allowed error relative to the largest element of the integral.
        limit: the most intervals; more are an error.
        dtype: the dtype of the points.

    Returns:
        the integral and an estimate of its error.

    Examples:
        >>> import math, oar
        >>> value, error = oar.science.quad(lambda x: oar.exp(-x * x), -math.inf, math.inf)
        >>> round(value.item() ** 2, 10), error < 1e-9
        (3.1415926536, True)
    """
    at_least_one("quad", limit=limit)
    if not (epsabs >= 0 and epsrel >= 0 and epsabs + epsrel > 0):
        raise ValueError(f"[quad] epsabs and epsrel must not be negative, and one must be above 0: {epsabs}, {epsrel}.")
    line = _Line(_limit(a, "a", "quad"), _limit(b, "b", "quad"), dtype)
    if float(a) == math.inf or float(b) == -math.inf:
        value, error = quad(f, b, a, args, epsabs=epsabs, epsrel=epsrel, limit=limit, dtype=dtype)
        return -value, error
    _, kronrod, gauss = _rule()
    left, right = np.array([line.ends[0]]), np.array([line.ends[1]])
    done_left, done_right = np.zeros(0), np.zeros(0)
    settled, settled_error = 0.0, 0.0
    with oar.no_grad():
        while True:
            fine, coarse = line.integrals(f, args, left, right, [kronrod, gauss], "quad")
            values, errors = fine.numpy(), np.abs((fine - coarse).numpy())
            if not np.isfinite(values).all():
                at = int(np.argwhere(~np.isfinite(values).reshape(len(left), -1).all(axis=1))[0, 0])
                raise ValueError(f"[quad] f is not finite in piece {at} of {len(left)} of the interval. Split the integral at "
                                 "the singularity, or subtract it.")
            # The difference of the rules is that of the coarser one; QUADPACK's power is what the finer one deserves.
            errors = np.minimum(errors, (200 * errors) ** 1.5) + 0.0
            errors = errors.reshape(len(left), -1).max(axis=1)
            total = settled + values.sum(axis=0)
            target = max(epsabs, epsrel * float(np.abs(total).max(initial=0.0)))
            error = settled_error + float(errors.sum())
            if error <= target:
                break
            large = errors > target * np.maximum((right - left) / (line.ends[1] - line.ends[0]), 1 / limit) / 2
            large[int(errors.argmax())] = True
            if len(done_left) + len(left) + int(large.sum()) > limit:
                raise RuntimeError(f"[quad] {limit} intervals were not enough: the error is {error:.3g}, allowed is {target:.3g}. "
                                   "Raise limit, epsabs or epsrel, or split the integral where f is not smooth.")
            settled = settled + values[~large].sum(axis=0)
            settled_error += float(errors[~large].sum())
            done_left, done_right = np.concatenate([done_left, left[~large]]), np.concatenate([done_right, right[~large]])
            left, right = left[large], right[large]
            middle = (left + right) / 2
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        left, right = np.concatenate([done_left, left]), np.concatenate([done_right, right])
    (pieces,) = line.integrals(f, args, left, right, [kronrod], "quad")
    return ops.sum(pieces, 0), error


def fixed_quad(f: Callable, a: Any, b: Any, args=(), *, n: int = 5, dtype: str = "float64") -> Tensor:
    """The integral of f from a to b, by Gauss-Legendre quadrature with n points: exact for polynomials of degree 2 n - 1.

    The result is differentiable with respect to a, b and what f uses, and ``oar.jit.to_static`` captures the call.

    Args:
        f: a function of a vector of points (and args) that returns a value or a tensor for each, along axis 0.
        a: the lower limit: a number or a tensor with one element.
        b: the upper limit.
        args: more arguments for f.
        n: the number of points.
        dtype: the dtype of the points, unless a limit is a tensor.

    Returns:
        the integral.

    Examples:
        >>> import oar
        >>> round(oar.science.fixed_quad(lambda x: x ** 9, 0.0, 1.0, n=5).item(), 12)
        0.1
    """
    at_least_one("fixed_quad", n=n)
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Tensor) and not math.isfinite(value):
            raise ValueError(f"[fixed_quad] {name} is {value}, but must be finite. Use quad for infinite limits.")
    tensors = [value for value in (a, b) if isinstance(value, Tensor)]
    nodes, weights = _legendre(n)
    kind = tensors[0].dtype if tensors else dtype
    s, w = oar.to_tensor(nodes, dtype=kind), oar.to_tensor(weights, dtype=kind)
    half = (b - a) / 2
    y = _values(f, (a + b) / 2 + s * half, args, "fixed_quad")
    flat = ops.matmul(ops.cast(w, y.dtype), ops.reshape(y, [n, -1]))
    return ops.reshape(flat, list(y.shape[1:])) * half
