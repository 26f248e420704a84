"""Ordinary differential equations: explicit, implicit and fixed steps, events, gradients in two ways."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor, ops
from oar._lazy import np
from oar.autograd.py_layer import PyLayer
from oar.science._implicit import once
from oar.science._state import Packing, at_least_one, leaves, positive
from oar.science._events import Event, FirstPart
from oar.science._problem import Problem, integrate
from oar.science._steppers import Step, rk4_step

__all__ = ["OdeSolution", "odeint", "solve_ivp"]

METHODS = ("dopri5", "esdirk4", "rk4")


class OdeSolution:
    """What ``solve_ivp`` returns: the accepted steps, callable at any time between the first and the last.

    Args:
        packing: how the state is made of tensors.
        steps: the accepted steps.
        evaluations: how often the function was called.
        rejected: how many steps were too inaccurate and were repeated.

    Attributes:
        t: the times of the accepted steps, as a list of floats.
        y: the state at the last of them.
        t_events: for each event the times when it was zero, as a tensor.
        y_events: for each event the states at these times.
        stopped: whether a terminal event ended the integration.
        evaluations: how often the function was called.
        rejected: how many steps were too inaccurate and were repeated.

    Examples:
        >>> import oar
        >>> solution = oar.science.solve_ivp(lambda t, y: -y, (0.0, 1.0), oar.to_tensor([1.0], dtype='float64'))
        >>> round(solution(0.5).item(), 5)
        0.60653
    """

    def __init__(self, packing: Packing, steps: list[Step], evaluations: int, rejected: int) -> None:
        self._packing, self._steps = packing, steps
        self._ends = [step.t1 for step in steps]
        self.t = [steps[0].t0, *self._ends]
        self.y = packing.unpack(steps[-1].y1)
        self.t_events: list[Tensor] = []
        self.y_events: list[list[Any]] = []
        self.stopped = False
        self.evaluations, self.rejected = evaluations, rejected

    def _vector(self, t: float) -> Tensor:
        first, last = self.t[0], self.t[-1]
        if not min(first, last) <= t <= max(first, last):
            raise ValueError(f"[OdeSolution] t is {t}, but the solution covers {first} to {last}.")
        if last >= first:
            at = bisect.bisect_left(self._ends, t)
        else:
            at = bisect.bisect_left([-end for end in self._ends], -t)
        return self._steps[at].at(t)

    def __call__(self, t: float) -> Any:
        """The state at time t."""
        return self._packing.unpack(self._vector(float(t)))


def _check_settings(owner: str, method: str, max_step: float, max_steps: int, first_step: float | None) -> None:
    if method not in METHODS:
        raise ValueError(f"[{owner}] method is {method!r}, but must be one of {', '.join(METHODS)}.")
    positive(owner, max_step=max_step)
    at_least_one(owner, max_steps=max_steps)
    if first_step is not None:
        positive(owner, first_step=first_step)


def solve_ivp(func, t_span: Sequence[float], y0: Any, args: Sequence[Any] = (), *, method: str = "dopri5", rtol: Any = 1e-6,
              atol: Any = 1e-9, events: Any = None, first_step: float | None = None, max_step: float = math.inf,
              max_steps: int = 100_000) -> OdeSolution:
    """Solves ``dy/dt = func(t, y)`` with steps chosen by the error, and returns the solution as a function of time.

    Gradients are those of the accepted steps. An event is a function of t and y; the times when it is zero are found and
    are differentiable. An attribute ``terminal = True`` of the function ends the integration at the first one, and
    ``direction`` selects zeros where the event increases (1) or decreases (-1).

    Args:
        func: a function of t and y (and args) that returns dy/dt, with the structure of y.
        t_span: the first and the last time; the last may be the earlier one.
        y0: the state at the first time: a tensor, or a tuple, list or dict of tensors. Complex tensors are allowed.
        args: more arguments for func.
        method: "dopri5" (explicit, order 5) or "esdirk4" (implicit, order 4, for stiff equations).
        rtol: the allowed error relative to the state: a number, or one per part of the state.
        atol: the allowed absolute error: a number, or one per part of the state.
        events: a function or a list of them.
        first_step: the first step size; chosen if None.
        max_step: the largest step size.
        max_steps: after so many steps an error is raised.

    Returns:
        an OdeSolution.

    Examples:
        >>> import oar
        >>> def ground(t, y):
        ...     return y[0]
        ...
        >>> ground.terminal = True
        >>> start = oar.to_tensor([10.0, 0.0], dtype='float64')
        >>> fall = oar.science.solve_ivp(lambda t, y: oar.stack([y[1], -9.81 + 0 * y[1]]), (0.0, 10.0), start, events=ground)
        >>> round(fall.t_events[0].item(), 4), (2 * 10 / 9.81) ** 0.5
        (1.4278, 1.4278431229270645)
    """
    _check_settings("solve_ivp", method, max_step, max_steps, first_step)
    if method == "rk4":
        raise ValueError("[solve_ivp] rk4 has no error estimate to choose steps by. Use odeint with method='rk4'.")
    t0, t1 = (float(t) for t in t_span)
    if not (math.isfinite(t0) and math.isfinite(t1)) or t0 == t1:
        raise ValueError(f"[solve_ivp] t_span must be two different finite times, but is ({t0}, {t1}).")
    problem = Problem(func, y0, args, rtol, atol, "solve_ivp")
    listed = [] if events is None else list(events) if isinstance(events, (list, tuple)) else [events]
    found = [Event(event, problem) for event in listed]
    steps: list[Step] = []
    stopped = False
    start = problem.packing.pack(y0)
    for event in found:
        event.start(t0, start)

    def on_step(step: Step) -> bool:
        nonlocal stopped
        hits = [(t, event) for event in found for t in [event.find(step)] if t is not None]
        hits.sort(key=lambda hit: abs(hit[0] - step.t0))
        for t, event in hits:
            event.keep(t, step)
            if event.terminal:
                stopped = True
                end = step.at(t)
                steps.append(FirstPart(step, t, end))
                return True
        steps.append(step)
        return False

    integrate(problem, method, t0, t1, start, first_step, max_step, max_steps, on_step)
    solution = OdeSolution(problem.packing, steps, problem.evaluations, problem.rejected)
    solution.stopped = stopped
    solution.t_events = [ops.stack(event.times, 0) if event.times else ops.zeros([0], "float64") for event in found]
    solution.y_events = [event.states for event in found]
    return solution


def _times(t: Any) -> list[float]:
    values = [float(value) for value in (t.detach().numpy() if isinstance(t, Tensor) else np.asarray(t, dtype=float)).ravel()]
    if len(values) < 2:
        raise ValueError(f"[odeint] t needs at least 2 times, but has {len(values)}.")
    rising = values[1] > values[0]
    if not all(math.isfinite(v) for v in values) or any((b > a) != rising or a == b for a, b in zip(values, values[1:])):
        raise ValueError("[odeint] t must be finite and strictly increasing or strictly decreasing.")
    return values


def _adaptive(problem: Problem, method: str, times: list[float], y0: Tensor, settings: dict[str, Any]) -> list[Tensor]:
    """The state at each of the times."""
    found, direction = [y0], math.copysign(1.0, times[-1] - times[0])

    def on_step(step: Step) -> bool:
        while len(found) < len(times) and (step.t1 - times[len(found)]) * direction >= 0:
            found.append(step.at(times[len(found)]))
        return False

    integrate(problem, method, times[0], times[-1], y0, settings["first_step"], settings["max_step"], settings["max_steps"],
               on_step)
    return found


def _fixed(problem: Problem, t: Any, y0: Tensor, step_size: float | None) -> list[Tensor]:
    """Steps of order 4: one between two times, or as many as ``step_size`` needs. Times may be symbolic without it."""
    count = len(t) if not isinstance(t, Tensor) else t.shape[0]
    found = [y0]
    for i in range(count - 1):
        start, span = t[i], t[i + 1] - t[i]
        pieces = 1 if step_size is None else max(1, math.ceil(abs(float(span)) / step_size - 1e-9))
        y, h = found[-1], span / pieces
        for j in range(pieces):
            y = rk4_step(problem.field, start + h * j, y, h)
        found.append(y)
    return found


class _Adjoint(PyLayer):
    @staticmethod
    def forward(ctx, solve, y0, *inputs):
        ctx.solve = solve
        with oar.no_grad():
            ys = solve.forward(y0)
        ctx.save_for_backward(ys, *inputs)
        return ys

    @staticmethod
    def backward(ctx, grad):
        ys, *inputs = ctx.saved_tensor()
        found = ctx.solve.backward(ys.detach(), inputs, grad.detach())
        return tuple(None if g is None else once(g, ys, "odeint with gradient='adjoint'") for g in found)


class _AdjointSolve:
    """Forward steps that keep nothing, and the adjoint equation backwards from one time to the one before."""

    def __init__(self, problem: Problem, method: str, times: list[float], settings: dict[str, Any]) -> None:
        self._problem, self._method, self._times, self._settings = problem, method, times, settings

    def _run(self, problem: Problem, times: list[float], y0: Tensor) -> list[Tensor]:
        if self._method == "rk4":
            return _fixed(problem, times, y0, self._settings["step_size"])
        return _adaptive(problem, self._method, times, y0, {**self._settings, "first_step": None})

    def forward(self, y0: Tensor) -> Tensor:
        return ops.stack(self._run(self._problem, self._times, y0), 0)

    def backward(self, ys: Tensor, inputs: list[Tensor], grad: Tensor) -> tuple[Any, ...]:
        problem, wanted = self._problem, [x for x in inputs if not x.stop_gradient]

        def augmented(t, state):
            with oar.enable_grad():
                y = state["y"].detach()
                y.stop_gradient = False
                slope = problem.field(t, y)
                pulled = oar.grad([slope], [y, *wanted], [-state["a"]], allow_unused=True)
            rates = [ops.zeros_like(x) if g is None else g for g, x in zip(pulled, [y, *wanted])]
            return {"y": slope.detach(), "a": rates[0], "p": rates[1:]}

        with oar.no_grad():
            a = grad[-1]
            totals = [ops.zeros_like(x) for x in wanted]
            for i in range(len(self._times) - 1, 0, -1):
                state = {"y": ys[i], "a": a, "p": totals}
                # The integrals for the parameters do not act back on the equation: only y and a decide the steps.
                free = [math.inf for _ in totals]
                atol = {"y": problem.atol, "a": problem.atol, "p": free}
                rtol = {"y": problem.rtol, "a": problem.rtol, "p": [0.0 for _ in totals]}
                back = Problem(augmented, state, (), rtol, atol, "odeint")
                (_, end) = self._run(back, [self._times[i], self._times[i - 1]], back.packing.pack(state))
                before = back.packing.unpack(end)
                a, totals = before["a"] + grad[i - 1], before["p"]
        given = iter(totals)
        return (a, *(None if x.stop_gradient else next(given) for x in inputs))


def _moved_by_times(problem: Problem, t: Any, times: list[float], y0: Tensor, ys: list[Tensor] | None) -> Any:
    """Connects states to recorded times: a state moves by its slope when its time does."""
    def slope(i: int, y: Tensor) -> Tensor:
        with oar.no_grad():
            return problem.field(times[i], y)

    def shift(i: int) -> Tensor:
        return ops.cast(t[i] - t[i].detach(), y0.dtype)

    if ys is None:
        return y0 - slope(0, y0) * shift(0)
    return [ys[0] + slope(0, ys[0]) * shift(0), *(y + slope(i, y) * shift(i) for i, y in enumerate(ys[1:], 1))]


def odeint(func, y0: Any, t: Any, args: Sequence[Any] = (), *, method: str = "dopri5", rtol: Any = 1e-6, atol: Any = 1e-9,
           gradient: str = "direct", params: Sequence[Tensor] | None = None, step_size: float | None = None,
           first_step: float | None = None, max_step: float = math.inf, max_steps: int = 100_000) -> Any:
    """The solution of ``dy/dt = func(t, y)`` at the times t.

    ``gradient="direct"`` records the accepted steps: exact derivatives of what was computed, in memory that grows with the
    steps. ``gradient="adjoint"`` solves a second equation backwards in time: memory does not grow, and the error of the
    gradient is of the size of the tolerances. Both reach y0, t (direct only), and what func uses: closures included with
    "direct"; ``args``, ``params`` and the parameters of a Layer with "adjoint".

    Args:
        func: a function of t and y (and args) that returns dy/dt, with the structure of y; or a Layer.
        y0: the state at t[0]: a tensor, or a tuple, list or dict of tensors. Complex tensors are allowed.
        t: at least two times, increasing or decreasing.
        args: more arguments for func.
        method: "dopri5" (explicit, order 5), "esdirk4" (implicit, order 4, for stiff equations) or "rk4" (fixed steps of
            order 4, which ``oar.jit.to_static`` captures).
        rtol: the allowed error relative to the state: a number, or one per part of the state.
        atol: the allowed absolute error: a number, or one per part of the state.
        gradient: "direct" or "adjoint".
        params: tensors that func uses, for "adjoint"; those of a Layer if None.
        step_size: for "rk4", the largest step; one step between two times if None.
        first_step: the first step size; chosen if None.
        max_step: the largest step size.
        max_steps: after so many steps an error is raised.

    Returns:
        the states at the times, along a new first axis, with the structure of y0.

    Examples:
        >>> import oar
        >>> rate = oar.to_tensor(2.0, dtype='float64', stop_gradient=False)
        >>> y = oar.science.odeint(lambda t, y: -rate * y, oar.ones([1], dtype='float64'), [0.0, 0.5, 1.0])
        >>> [round(value, 5) for value in y.flatten().tolist()]
        [1.0, 0.36788, 0.13534]
        >>> y[-1].backward()
        >>> round(rate.grad.item(), 5)
        -0.13534
    """
    _check_settings("odeint", method, max_step, max_steps, first_step)
    if gradient not in ("direct", "adjoint"):
        raise ValueError(f"[odeint] gradient is {gradient!r}, but must be 'direct' or 'adjoint'.")
    if step_size is not None:
        positive("odeint", step_size=step_size)
        if method != "rk4":
            raise ValueError(f"[odeint] step_size is for method='rk4'; {method} chooses its steps. Use max_step to limit them.")
    problem = Problem(func, y0, args, rtol, atol, "odeint")
    start = problem.packing.pack(y0)
    settings = {"first_step": first_step, "max_step": max_step, "max_steps": max_steps, "step_size": step_size}
    if gradient == "adjoint":
        found = list(params) if params is not None else list(func.parameters()) if hasattr(func, "parameters") else []
        found += [x for x in leaves(list(args)) if isinstance(x, Tensor)]
        solve = _AdjointSolve(problem, method, _times(t), settings)
        stacked = _Adjoint.apply(solve, start, *found)
    elif method == "rk4":
        stacked = ops.stack(_fixed(problem, t, start, step_size), 0)
    else:
        times = _times(t)
        recorded = isinstance(t, Tensor) and not t.stop_gradient
        if recorded:
            start = _moved_by_times(problem, t, times, start, None)
        ys = _adaptive(problem, method, times, start, settings)
        stacked = ops.stack(_moved_by_times(problem, t, times, start, ys) if recorded else ys, 0)
    return problem.packing.unpack(stacked, [stacked.shape[0]])
