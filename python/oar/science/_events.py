"""Zeros of functions of the state while an equation is solved."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.science._brent import brent_number
from oar.science._problem import Problem
from oar.science._steppers import Step


class Event:
    """A function whose zeros are wanted."""

    def __init__(self, function, problem: Problem) -> None:
        self.function, self._problem = function, problem
        self.terminal = bool(getattr(function, "terminal", False))
        self._direction = float(getattr(function, "direction", 0))
        self.times: list[Tensor] = []
        self.states: list[Any] = []
        self.value = 0.0

    def at(self, t: Any, vector: Tensor) -> Tensor:
        made = self.function(t, self._problem.packing.unpack(vector))
        if not isinstance(made, Tensor) or made.size != 1:
            raise ValueError(f"[{self._problem.owner}] an event must return a tensor with one element.")
        return ops.reshape(made, [])

    def number(self, t: float, vector: Tensor) -> float:
        with oar.no_grad():
            return float(self.at(t, vector.detach()))

    def start(self, t: float, y: Tensor) -> None:
        self.value = self.number(t, y)

    def find(self, step: Step) -> float | None:
        """When the event is zero within a step."""
        before, self.value = self.value, self.number(step.t1, step.y1)
        crosses = before * self.value < 0 or (self.value == 0 and before != 0)
        if not crosses or self._direction * (self.value - before) < 0:
            return None
        return brent_number(lambda t: self.number(t, step.at(t)), step.t0, step.t1, before, self.value, 1e-12)

    def keep(self, t: float, step: Step) -> None:
        """Records the time as a function of the state: to first order it moves by -g / (dg/dt)."""
        state = step.at(t)
        time = ops.full([], t, "float64")
        value = self.at(t, state)
        if not value.stop_gradient:
            width = 1e-4 * (step.t1 - step.t0)
            low, high = max(min(t - width, step.t1), step.t0), min(max(t + width, step.t0), step.t1)
            if step.t1 < step.t0:
                low, high = min(max(t - width, step.t1), step.t0), max(min(t + width, step.t0), step.t1)
            slope = (self.number(high, step.at(high)) - self.number(low, step.at(low))) / (high - low)
            time = time - ops.cast((value - value.detach()) / slope, "float64")
            rate = (step.at(high) - step.at(low)).detach() / (high - low)
            state = state + rate * ops.cast(time - time.detach(), state.dtype)
        self.times.append(time)
        self.states.append(self._problem.packing.unpack(state))


class FirstPart(Step):
    """The first part of a step."""

    def __init__(self, step: Step, t1: float, y1: Tensor) -> None:
        super().__init__(step.t0, t1, step.y0, y1, step.k0, step.k1, None)
        self._whole = step

    def at(self, t: float) -> Tensor:
        return self._whole.at(t)
