"""One step of each method for differential equations, and the polynomial between its ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.science import _tableaux as tableaux
from oar.science._implicit import attach

Field = Callable[[float, Tensor], Tensor]


def combined(weights: list[float], slopes: list[Tensor]) -> Tensor:
    """The sum of weights * slopes, over vectors."""
    pairs = [(w, k) for w, k in zip(weights, slopes) if w != 0.0]
    if len(pairs) == 1:
        return pairs[0][1] * pairs[0][0]
    row = ops.cast(oar.to_tensor([w for w, _ in pairs], dtype="float64"), pairs[0][1].dtype)
    return ops.matmul(row, ops.stack([k for _, k in pairs], 0))


class Step:
    """An accepted step from t0 to t1, and the solution between.

    Args:
        t0: where it starts.
        t1: where it ends.
        y0: the state at t0.
        y1: the state at t1.
        k0: the slope at t0.
        k1: the slope at t1.
        top: a coefficient of fourth order for the interpolant; None for a cubic.
    """

    def __init__(self, t0: float, t1: float, y0: Tensor, y1: Tensor, k0: Tensor, k1: Tensor, top: Tensor | None) -> None:
        self.t0, self.t1, self.y0, self.y1, self.k0, self.k1, self._top = t0, t1, y0, y1, k0, k1, top

    def at(self, t: float) -> Tensor:
        """The state at t0 <= t <= t1."""
        if t == self.t1:
            return self.y1
        h = self.t1 - self.t0
        s = (t - self.t0) / h
        change = self.y1 - self.y0
        first = self.k0 * h - change
        inner = change - self.k1 * h - first
        if self._top is not None:
            inner = inner + self._top * (h * (1 - s))
        return self.y0 + (change + (first + inner * s) * (1 - s)) * s


class DormandPrince:
    """Explicit, order 5."""

    order = 5
    first_same_as_last = True

    def __init__(self, field: Field) -> None:
        self._field = field

    def step(self, t: float, y: Tensor, k0: Tensor, h: float) -> tuple[Step, Tensor]:
        """A step and the estimate of its error."""
        slopes, stage = [k0], y
        for c, row in zip(tableaux.DOPRI5_C[1:], tableaux.DOPRI5_A[1:]):
            stage = y + combined([a * h for a in row], slopes)
            slopes.append(self._field(t + c * h, stage))
        error = combined([e * h for e in tableaux.DOPRI5_ERROR], slopes)
        top = combined(tableaux.DOPRI5_DENSE, slopes)
        return Step(t, t + h, y, stage, k0, slopes[-1], top), error


class NewtonFailed(Exception):
    """The equation of a stage was not solved: the step is too long."""


class Esdirk:
    """Implicit, order 4, L-stable: for stiff equations. Each stage is solved by Newton's method."""

    order = 4

    def __init__(self, field: Field, scaled_norm: Callable[[Tensor, Tensor], float]) -> None:
        self._field = field
        self._scaled_norm = scaled_norm

    def _jacobian(self, t: float, z: Tensor) -> Tensor:
        with oar.enable_grad():
            at = z.detach()
            at.stop_gradient = False
            value = self._field(t, at)
            rows = []
            for i in range(z.size):
                unit = ops.zeros_like(z)
                unit[i] = 1.0
                (row,) = oar.grad([value], [at], [unit], retain_graph=True, allow_unused=True)
                rows.append(ops.zeros_like(z) if row is None else row)
        stacked = ops.stack(rows, 0)
        return ops.conj(stacked) if z.is_complex() else stacked  # gradients are conjugated

    def _matrix(self, t: float, z: Tensor, factor: float) -> Tensor:
        """I - factor * J at z."""
        return oar.eye(z.size, dtype=z.dtype) - self._jacobian(t, z) * factor

    def _stage(self, t: float, known: Tensor, guess: Tensor, factor: float, inverse: Tensor) -> Tensor:
        """The z with z = known + factor * field(t, z)."""
        z, before = guess.detach(), math.inf
        with oar.no_grad():
            fixed = known.detach()
            for _ in range(10):
                residual = z - fixed - self._field(t, z) * factor
                change = ops.matmul(inverse, residual)
                z = z - change
                size = self._scaled_norm(change, z)
                # What is left after this change, from how much smaller it is than the one before.
                shrinks = size < 0.9 * before
                if size < 1e-3 or (shrinks and size * size / (before - size) < 1e-3 and before < math.inf):
                    break
                if not shrinks:
                    raise NewtonFailed
                before = size
            else:
                raise NewtonFailed
        return self._recorded(t, z, known, factor)

    def _recorded(self, t: float, z: Tensor, known: Tensor, factor: float) -> Tensor:
        """z with the derivative that its equation gives it."""
        if not oar.is_grad_enabled():
            return z

        def solve_transposed(g: Tensor) -> Tensor:
            adjoint = self._matrix(t, z, factor).numpy().conj().T
            return oar.to_tensor(np.linalg.solve(adjoint, g.numpy()))

        return attach(z, known + self._field(t, z) * factor - z, solve_transposed, "odeint with method='esdirk4'")

    def step(self, t: float, y: Tensor, k0: Tensor, h: float) -> tuple[Step, Tensor]:
        """A step and the estimate of its error."""
        factor = h * tableaux.ESDIRK_DIAGONAL
        with oar.no_grad():
            # One inverse for the many iterations of all stages.
            inverse = oar.to_tensor(np.linalg.inv(self._matrix(t, y, factor).numpy()))
        slopes, stage = [k0], y
        for c, row in zip(tableaux.ESDIRK_C[1:], tableaux.ESDIRK_A[1:]):
            known = y + combined([a * h for a in row], slopes)
            stage = self._stage(t + c * h, known, stage, factor, inverse)
            slopes.append((stage - known) / factor)
        with oar.no_grad():
            error = combined([e * h for e in tableaux.ESDIRK_ERROR], slopes)
            # Stiff components are damped in the method, but not in the difference of two methods.
            error = ops.matmul(inverse, error)
        return Step(t, t + h, y, stage, k0, slopes[-1], None), error


def rk4_step(field: Any, t: Any, y: Tensor, h: Any) -> Tensor:
    """The classical step of order 4. ``t`` and ``h`` may be tensors."""
    k1 = field(t, y)
    k2 = field(t + h / 2, y + k1 * (h / 2))
    k3 = field(t + h / 2, y + k2 * (h / 2))
    k4 = field(t + h, y + k3 * h)
    return y + (k1 + (k2 + k3) * 2.0 + k4) * (h / 6)
