"""Zeros of functions and fixed points, with the derivatives that the equation gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.func import jvp
from oar.science._brent import brent_array
from oar.science._implicit import attach
from oar.science._state import at_least_one, positive
from oar.science.linear import _dot, _gmres, _norm

__all__ = ["RootSolution", "bisect", "brentq", "fixed_point", "newton", "newton_krylov"]

Function = Callable[..., Tensor]


class RootSolution(NamedTuple):
    """What ``newton_krylov`` and ``fixed_point`` return.

    Examples:
        >>> import oar
        >>> solution = oar.science.fixed_point(oar.cos, oar.to_tensor([1.0], dtype='float64'))
        >>> solution.converged, round(solution.x.item(), 6)
        (True, 0.739085)
    """

    x: Tensor
    converged: bool
    iterations: int
    residual_norm: float


def _bracket(f: Function, a, b, args, owner: str):
    a = a if isinstance(a, Tensor) else oar.to_tensor(a, dtype="float64")
    b = b if isinstance(b, Tensor) else oar.to_tensor(b, dtype=a.dtype)
    if not (a.is_floating_point() and b.is_floating_point()):
        raise TypeError(f"[{owner}] the ends of the bracket must be floats, but are {a.dtype} and {b.dtype}.")
    left, right = ops.broadcast_tensors([a.detach(), ops.cast(b.detach(), a.dtype)])
    left, right = ops.assign(left), ops.assign(right)
    at_left, at_right = f(left, *args), f(right, *args)
    if list(at_left.shape) != list(left.shape):
        raise ValueError(f"[{owner}] f must be elementwise, but it maps shape {list(left.shape)} to {list(at_left.shape)}.")
    bad = ops.logical_not(at_left * at_right <= 0)
    if bool(bad.any()):
        where = tuple(int(i) for i in np.argwhere(bad.numpy())[0])
        at = f" at element {where}" if where else ""
        raise ValueError(f"[{owner}] f has no change of sign in the bracket{at}: f({left.numpy()[where]:.6g}) = "
                         f"{at_left.numpy()[where]:.6g} and f({right.numpy()[where]:.6g}) = {at_right.numpy()[where]:.6g}. "
                         "Choose ends between which f crosses zero.")
    return left, right, at_left, at_right


def _polished(f: Function, x: Tensor, args) -> Tensor:
    """x after recorded steps of Newton's method. Each doubles the order to which its derivatives are those of the root:
    two give the first three."""
    if not oar.is_grad_enabled() or f(x, *args).stop_gradient:
        return x
    root = x
    for _ in range(2):
        value, slope = jvp(lambda z: f(z, *args), root)
        root = root - value / slope
    # A tangent root has no derivative; its value stays.
    return ops.where(ops.isfinite(root), root, x)


def bisect(f: Function, a, b, args=(), *, xtol: float = 2e-12, maxiter: int = 200) -> Tensor:
    """A zero of an elementwise f in each bracket [a, b], by bisection.

    The zero is differentiable with respect to what f uses, up to the third order.

    Args:
        f: an elementwise function of x (and args).
        a: one end of the bracket, or a tensor of them.
        b: the other end.
        args: more arguments for f.
        xtol: the width at which a bracket is small enough; never below what the dtype can tell apart.
        maxiter: the most halvings.

    Returns:
        the zeros, of the shape of the brackets.

    Examples:
        >>> import oar
        >>> c = oar.to_tensor([2.0, 9.0], dtype='float64', stop_gradient=False)
        >>> x = oar.science.bisect(lambda x: x * x - c, oar.zeros([2], dtype='float64'), 10.0)
        >>> [round(value, 6) for value in x.tolist()]
        [1.414214, 3.0]
        >>> x.sum().backward()
        >>> [round(value, 6) for value in c.grad.tolist()]
        [0.353553, 0.166667]
    """
    positive("bisect", xtol=xtol)
    at_least_one("bisect", maxiter=maxiter)
    with oar.no_grad():
        left, right, at_left, _ = _bracket(f, a, b, args, "bisect")
        for _ in range(maxiter):
            middle = (left + right) / 2
            value = f(middle, *args)
            same = at_left * value > 0
            left, right = ops.where(same, middle, left), ops.where(same, right, middle)
            at_left = ops.where(same, value, at_left)
            width = float(ops.abs(right - left).max())
            if width <= xtol or bool(((middle == left) | (middle == right)).all() and width <= _spacing(middle)):
                break
        x = (left + right) / 2
    return _polished(f, x, args)


def _spacing(x: Tensor) -> float:
    return float(np.spacing(np.abs(x.numpy())).max()) * 2


def brentq(f: Function, a, b, args=(), *, xtol: float = 2e-12, maxiter: int = 100) -> Tensor:
    """A zero of an elementwise f in each bracket [a, b], by Brent's method.

    The zero is differentiable with respect to what f uses, up to the third order.

    Args:
        f: an elementwise function of x (and args).
        a: one end of the bracket, or a tensor of them.
        b: the other end.
        args: more arguments for f.
        xtol: the width at which a bracket is small enough; never below what the dtype can tell apart.
        maxiter: the most iterations; more are an error.

    Returns:
        the zeros, of the shape of the brackets.

    Examples:
        >>> import oar
        >>> round(oar.science.brentq(lambda x: oar.cos(x) - x, 0.0, 1.0).item(), 9)
        0.739085133
    """
    positive("brentq", xtol=xtol)
    at_least_one("brentq", maxiter=maxiter)
    with oar.no_grad():
        left, right, at_left, at_right = _bracket(f, a, b, args, "brentq")
        x = oar.to_tensor(brent_array(lambda z: f(oar.to_tensor(z), *args).numpy(), left.numpy(), right.numpy(),
                                      at_left.numpy(), at_right.numpy(), xtol, maxiter))
    return _polished(f, x, args)


def newton(f: Function, x0: Tensor, args=(), *, tol: float = 1e-10, maxiter: int = 50) -> Tensor:
    """A zero of an elementwise f near each element of x0, by Newton's method with exact derivatives.

    The zero is differentiable with respect to what f uses, up to the third order. Complex zeros are found from complex
    starts.

    Args:
        f: an elementwise function of x (and args).
        x0: where to start.
        args: more arguments for f.
        tol: the size of a step at which an element is done, relative to max(1, abs(x)).
        maxiter: the most iterations; more are an error.

    Returns:
        the zeros, of the shape of x0.

    Examples:
        >>> import oar
        >>> round(oar.science.newton(lambda x: x ** 3 - 2, oar.to_tensor(1.0, dtype='float64')).item(), 9)
        1.25992105
    """
    positive("newton", tol=tol)
    at_least_one("newton", maxiter=maxiter)
    if not isinstance(x0, Tensor) or not (x0.is_floating_point() or x0.is_complex()):
        raise TypeError("[newton] x0 must be a float or complex tensor.")
    with oar.no_grad():
        x = x0.detach()
        precise = str(x.dtype).endswith(("float64", "complex128"))
        tol = max(tol, 1e-14 if precise else 4e-7)
        for _ in range(maxiter):
            with oar.enable_grad():
                value, slope = jvp(lambda z: f(z, *args), x)
            if list(value.shape) != list(x.shape):
                raise ValueError(f"[newton] f must be elementwise, but it maps shape {list(x.shape)} to {list(value.shape)}.")
            value, slope = value.detach(), slope.detach()
            change = ops.where(value == 0, ops.zeros_like(x), value / slope)
            x = x - change
            if not bool(ops.isfinite(x).all()):
                raise RuntimeError("[newton] the derivative of f is 0, or f is not finite, at an iterate. Start closer to the "
                                   "zero, or use brentq with a bracket.")
            if bool((ops.abs(change) <= tol * ops.maximum(ops.abs(x), ops.ones_like(ops.abs(x)))).all()):
                break
        else:
            raise RuntimeError(f"[newton] no zero after {maxiter} iterations; the last step was up to "
                               f"{float(ops.abs(change).max()):.3g}. Start closer to the zero, raise maxiter, or use brentq "
                               "with a bracket.")
    return _polished(f, x, args)


def _pulled_back(f: Function, x: Tensor) -> Callable[[Tensor], Tensor]:
    """v -> J^T v for the Jacobian of f at x, from one recorded call."""
    with oar.enable_grad():
        at = x.detach()
        at.stop_gradient = False
        value = f(at)

    def pull(v: Tensor) -> Tensor:
        (found,) = oar.grad([value], [at], [v], retain_graph=True, allow_unused=True)
        return ops.zeros_like(x) if found is None else found

    return pull


def newton_krylov(f: Function, x0: Tensor, args=(), *, tol: float = 1e-8, maxiter: int = 50, inner_maxiter: int | None = None,
                  restart: int = 30) -> RootSolution:
    """A zero of a function from tensors to tensors of the same shape, by Newton's method with GMRES.

    The Jacobian is never formed: GMRES uses its products with vectors. Steps are shortened until the residual decreases. The
    zero is differentiable with respect to what f uses.

    Args:
        f: the function of x (and args).
        x0: where to start.
        args: more arguments for f.
        tol: the norm of f at which x is a zero.
        maxiter: the most steps of Newton's method.
        inner_maxiter: the most steps of GMRES in each; 10 times the size of x0 if None.
        restart: the steps of GMRES between restarts.

    Returns:
        x, whether it converged, the iterations and the norm of f there.

    Examples:
        >>> import oar
        >>> f = lambda x: x + 0.1 * oar.roll(x, 1) ** 3 - 1.0
        >>> solution = oar.science.newton_krylov(f, oar.zeros([4], dtype='float64'))
        >>> solution.converged, [round(value, 5) for value in solution.x.tolist()]
        (True, [0.9217, 0.9217, 0.9217, 0.9217])
    """
    positive("newton_krylov", tol=tol)
    at_least_one("newton_krylov", maxiter=maxiter, restart=restart)

    def call(z: Tensor) -> Tensor:
        return f(z, *args)

    limit = inner_maxiter or 10 * x0.size
    with oar.no_grad():
        x = x0.detach()
        value = call(x)
        if list(value.shape) != list(x.shape):
            raise ValueError(f"[newton_krylov] f must keep the shape, but maps {list(x.shape)} to {list(value.shape)}.")
        size, count = _norm(value), 0
        while size > tol and count < maxiter:
            at, right = x, -value
            inner = min(0.1, math.sqrt(size)) * size

            def along(v: Tensor) -> Tensor:
                with oar.enable_grad():
                    return jvp(call, at, v)[1].detach()  # noqa: B023

            step, _, _ = _gmres(along, right, None, lambda v: v, inner, limit, min(restart, x0.size))
            length = 1.0
            for _ in range(30):
                trial = x + step * length
                value = call(trial)
                found = _norm(value)
                if found <= (1 - 1e-4 * length) * size:
                    break
                length /= 2
            else:
                break
            x, size = trial, found
            count += 1
        converged = size <= tol
    pull = _pulled_back(call, x)

    def solve_transposed(g: Tensor) -> Tensor:
        return _gmres(pull, g, None, lambda v: v, max(1e-10, tol * 1e-2) * _norm(g), limit, min(restart, x0.size))[0]

    return RootSolution(attach(x, -call(x), solve_transposed, "newton_krylov"), converged, count, size)


def fixed_point(g: Function, x0: Tensor, args=(), *, tol: float = 1e-8, maxiter: int = 500, memory: int = 5) -> RootSolution:
    """An x with ``x = g(x)``, by iteration with Anderson's acceleration.

    The fixed point is differentiable with respect to what g uses: one linear system is solved with GMRES, and the
    iterations are not recorded.

    Args:
        g: the function of x (and args), from tensors to tensors of the same shape.
        x0: where to start.
        args: more arguments for g.
        tol: the norm of ``g(x) - x`` at which x is a fixed point.
        maxiter: the most iterations.
        memory: how many iterates the acceleration combines; 0 switches it off.

    Returns:
        x, whether it converged, the iterations and the norm of ``g(x) - x``.

    Examples:
        >>> import oar
        >>> a = oar.to_tensor([2.0], dtype='float64', stop_gradient=False)
        >>> x = oar.science.fixed_point(lambda x: (x + a / x) / 2, oar.ones([1], dtype='float64')).x
        >>> x.backward()
        >>> round(x.item(), 6), round(a.grad.item(), 6)
        (1.414214, 0.353553)
    """
    positive("fixed_point", tol=tol)
    at_least_one("fixed_point", maxiter=maxiter)
    if memory < 0:
        raise ValueError(f"[fixed_point] memory must be at least 0, but is {memory}.")

    def call(z: Tensor) -> Tensor:
        return g(z, *args)

    with oar.no_grad():
        x = x0.detach()
        images: list[Tensor] = []
        residuals: list[Tensor] = []
        for count in range(1, maxiter + 1):
            image = call(x)
            if list(image.shape) != list(x.shape):
                raise ValueError(f"[fixed_point] g must keep the shape, but maps {list(x.shape)} to {list(image.shape)}.")
            residual = image - x
            size = _norm(residual)
            if size <= tol or not math.isfinite(size):
                break
            images, residuals = [*images, image][-memory - 1 :], [*residuals, residual][-memory - 1 :]
            x = _anderson(images, residuals) if memory and len(images) > 1 else image
        converged = size <= tol
    pull = _pulled_back(call, x)

    def solve_transposed(v: Tensor) -> Tensor:
        return _gmres(lambda w: w - pull(w), v, None, lambda w: w, 1e-10 * _norm(v), 10 * x0.size, min(30, x0.size))[0]

    return RootSolution(attach(x, call(x) - x, solve_transposed, "fixed_point"), converged, count, size)


def _anderson(images: list[Tensor], residuals: list[Tensor]) -> Tensor:
    """The combination of images whose combined residual is smallest."""
    last = residuals[-1]
    changes = [last - r for r in residuals[:-1]]
    gram = np.array([[complex(_dot(a, b).numpy()) for b in changes] for a in changes])
    right = np.array([complex(_dot(a, last).numpy()) for a in changes])
    weights = np.linalg.lstsq(gram, right, rcond=1e-12)[0]
    made = images[-1]
    for weight, image in zip(weights, images[:-1]):
        number = complex(weight) if last.is_complex() else float(weight.real)
        made = made - (images[-1] - image) * number
    return made
