"""A differential equation on flat vectors, and adaptive steps through it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.jit.static_function import StaticFunction
from oar.science._state import Packing
from oar.science._steppers import DormandPrince, Esdirk, NewtonFailed, Step


class Problem:
    """The equation on flat vectors, with tolerances."""

    def __init__(self, func, y0, args, rtol, atol, owner: str) -> None:
        self.owner = owner
        if not callable(func):
            raise TypeError(f"[{owner}] func must be a function of t and y, not {type(func).__name__}.")
        self.packing = Packing(y0, owner, "y0")
        self._func, self._args = func, tuple(args)
        # A captured function would be captured again for every other number.
        self._needs_tensor = any(isinstance(part, StaticFunction) for part in (func, getattr(func, "forward", None)))
        self.evaluations = self.rejected = 0
        self.rtol, self.atol = self.packing.spread(rtol, "rtol"), self.packing.spread(atol, "atol")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            smallest = float(value if isinstance(value, float) else value.min())
            if not smallest >= 0:
                raise ValueError(f"[{owner}] {name} must not be negative, but is {smallest}.")
        if isinstance(self.rtol, float) and isinstance(self.atol, float) and self.rtol == 0 and self.atol == 0:
            raise ValueError(f"[{owner}] rtol and atol are both 0: no step can be that exact. Set one of them.")
        # What may have any error does not count in the mean either.
        counted = self.packing.size if isinstance(self.atol, float) else int(ops.sum(ops.cast(ops.isfinite(self.atol), "int64")))
        self._counted = max(counted, 1)
        precise = "64" in str(self.packing.dtype) and "complex64" not in str(self.packing.dtype) or "128" in str(self.packing.dtype)
        self.epsilon = 2.0**-52 if precise else 2.0**-23

    def field(self, t: Any, y: Tensor) -> Tensor:
        self.evaluations += 1
        if self._needs_tensor and not isinstance(t, Tensor):
            t = oar.to_tensor(t, dtype="float64")
        slope = self._func(t, self.packing.unpack(y), *self._args)
        return self.packing.pack(slope, "what func returns")

    def scaled_norm(self, change: Tensor, *states: Tensor) -> float:
        """The root mean square of a change in units of the tolerance."""
        with oar.no_grad():
            size = ops.abs(states[0])
            for other in states[1:]:
                size = ops.maximum(size, ops.abs(other))
            ratio = ops.abs(change) / (self.atol + size * self.rtol)
            return math.sqrt(float(ops.sum(ratio * ratio)) / self._counted)

    def first_step(self, stepper, t: float, y: Tensor, k: Tensor, direction: float, span: float) -> float:
        """Hairer, Norsett and Wanner, Solving ODEs I, section II.4."""
        with oar.no_grad():
            size, slope = self.scaled_norm(y, y), self.scaled_norm(k, y)
            h = 1e-6 if size < 1e-5 or slope < 1e-5 else 0.01 * size / slope
            h = min(h, span)
            after = self.field(t + direction * h, y + k * (direction * h))
            bend = self.scaled_norm(after - k, y) / h
            largest = max(slope, bend)
            second = max(1e-6, h * 1e-3) if not largest > 1e-15 else (0.01 / largest) ** (1 / (stepper.order + 1))
            return min(100 * h, second, span)


def integrate(problem: Problem, method: str, t0: float, t1: float, y0: Tensor, first_step: float | None, max_step: float,
               max_steps: int, on_step: Callable[[Step], bool]) -> None:
    """Adaptive steps from t0 to t1; ``on_step`` gets each and may end the integration."""
    stepper: Any = DormandPrince(problem.field) if method == "dopri5" else Esdirk(problem.field, problem.scaled_norm)
    direction, t, y = math.copysign(1.0, t1 - t0), t0, y0
    k = problem.field(t, y)
    h = first_step or problem.first_step(stepper, t, y, k, direction, abs(t1 - t0))
    before, taken = 1.0, 0
    while (t1 - t) * direction > 0:
        taken += 1
        if taken > max_steps:
            raise RuntimeError(f"[{problem.owner}] {max_steps} steps were not enough: t is {t:g} of {t1:g}. Raise max_steps, "
                               f"loosen rtol and atol{', or use method=esdirk4 if the equation is stiff' * (method == 'dopri5')}.")
        h = min(h, max_step)
        if h < 16 * problem.epsilon * max(abs(t), abs(t1 - t0) * 1e-3):
            raise RuntimeError(f"[{problem.owner}] the step size fell to {h:.3g} at t = {t:g}: the solution has a singularity "
                               "there, is not finite, or rtol and atol are below what the dtype can hold. Stop before "
                               "that time, loosen the tolerances or use float64.")
        last = h >= abs(t1 - t) * (1 - 1e-12)
        length = t1 - t if last else direction * h
        try:
            step, error = stepper.step(t, y, k, length)
            size = problem.scaled_norm(error, y, step.y1)
        except NewtonFailed:
            size = math.inf
        if not size <= 1.0:
            problem.rejected += 1
            h = abs(length) * (max(0.2, 0.9 * size ** (-1 / stepper.order)) if math.isfinite(size) else 0.25)
            continue
        if last:
            step.t1 = t1
        t, y, k = step.t1, step.y1, step.k1
        if on_step(step):
            return
        # A controller that also looks at the step before is smoother.
        small = max(size, 1e-10)
        factor = 0.9 * small ** (-0.7 / stepper.order) * before ** (0.4 / stepper.order)
        h, before = abs(length) * min(5.0, max(0.2, factor)), small
