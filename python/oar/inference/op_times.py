"""Where the time of runs went, by op."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["OpTime", "add_op_times"]

_OP = 0  # the kind of an event that is a call of an op


class OpTime(NamedTuple):
    """How often an op was called, and for how long, without the calls inside it."""

    calls: int
    milliseconds: float


def add_op_times(times: dict[str, OpTime], events: list[Any]) -> None:
    """Adds the events of a profile to sums by op."""
    calls = sorted(((thread, begin, -end, name) for kind, name, begin, end, thread, *_ in events if kind == _OP))
    open_calls: list[tuple[int, int, str]] = []
    for thread, begin, minus_end, name in calls:
        while open_calls and (open_calls[-1][0] != thread or open_calls[-1][1] <= begin):
            open_calls.pop()
        spent = (-minus_end - begin) * 1e-6
        if open_calls:
            outer = times[open_calls[-1][2]]
            times[open_calls[-1][2]] = OpTime(outer.calls, outer.milliseconds - spent)
        before = times.get(name, OpTime(0, 0.0))
        times[name] = OpTime(before.calls + 1, before.milliseconds + spent)
        open_calls.append((thread, -minus_end, name))
