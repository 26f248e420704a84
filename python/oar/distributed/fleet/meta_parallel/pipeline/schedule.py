"""Which stage does what when.

A schedule is the record of a simulated run: in it, an action begins when what it needs is there. So the processes can carry it out in
this order, if sending does not wait for the receiver. There is no rule that could be forgotten, and no deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["KINDS", "Action", "Schedule", "make_schedule"]

# The names in strategies, and whether backward passes are split.
KINDS = {"F-then-B": False, "FThenB": False, "1F1B": False, "VPP": False, "ZBH1": True, "ZBVPP": True}
_MANY = 1 << 30


class Action(NamedTuple):
    """What a stage does with a micro-batch.

    ``F`` is the forward pass of a chunk of layers, ``B`` the backward pass, ``W`` the part of it that weights need.
    """

    kind: str
    chunk: int
    micro: int


class Schedule(NamedTuple):
    """A schedule.

    Attributes:
        actions: those of each stage, in order.
        idle: which part of the time a stage has nothing to do, on average. A backward pass takes as long as two forward passes.
        most_kept: for each stage, the most micro-batches (times chunks) whose activations it keeps at once.
    """

    actions: list[list[Action]]
    idle: float
    most_kept: list[int]


class _Stage:
    """A stage in the simulation."""

    def __init__(self, number: int, stages: int, micro_batches: int, chunks: int, kind: str) -> None:
        self.number, self.stages, self.chunks, self.split = number, stages, chunks, KINDS[kind]
        self.first_all_forward = kind in ("F-then-B", "FThenB")
        places = [(chunk, micro) for chunk in range(chunks) for micro in range(micro_batches)]
        # Micro-batches in groups of as many as there are stages: a group goes through one chunk after the other.
        self.forward = sorted(places, key=lambda place: (place[1] // stages, place[0], place[1]))
        self.backward = sorted(places, key=lambda place: (place[1] // stages, -place[0], place[1]))
        self.weights: list[tuple[int, int]] = []
        self.limit = self._limit()
        self.forwards = self.backwards = self.kept = self.most_kept = 0
        self.free_at = self.busy = 0
        self.actions: list[Action] = []

    def _limit(self) -> int:
        """How many micro-batches may be on their way."""
        if self.first_all_forward:
            return _MANY
        behind = self.stages - self.number
        return behind if self.chunks == 1 else 2 * (behind - 1) + (self.chunks - 1) * self.stages + 1

    def choice(self, time: int, done: dict[Action, int]) -> Action | None:
        """What it does next; None if it waits."""
        # With several chunks, as many micro-batches as may be are on their way; with one, as few as keep the stages busy.
        kinds = "BF" if self.chunks == 1 and not self.first_all_forward else "FB"
        for kind in kinds:
            action = self._next_forward() if kind == "F" else self._next_backward()
            if action is not None and self._is_ready(action, time, done):
                return action
        return Action("W", *self.weights[0]) if self.weights else None

    def _next_forward(self) -> Action | None:
        may = self.forwards < len(self.forward) and self.kept < self.limit
        return Action("F", *self.forward[self.forwards]) if may else None

    def _next_backward(self) -> Action | None:
        may = self.forwards == len(self.forward) or (self.backwards < self.forwards and not self.first_all_forward)
        return Action("B", *self.backward[self.backwards]) if may and self.backwards < len(self.backward) else None

    def _is_ready(self, action: Action, time: int, done: dict[Action, int]) -> bool:
        return all(done.get(needed, _MANY) <= time for needed in _needs(action, self.number, self.stages, self.chunks))

    def begin(self, action: Action, time: int) -> int:
        """When the action ends."""
        self.actions.append(action)
        if action.kind == "F":
            self.forwards += 1
            self.kept += 1
            self.most_kept = max(self.most_kept, self.kept)
        elif action.kind == "B":
            self.backwards += 1
            if self.split:
                self.weights.append(action[1:])
        else:
            self.weights.pop(0)
        if action.kind == "W" or (action.kind == "B" and not self.split):
            self.kept -= 1
        length = 2 if action.kind == "B" and not self.split else 1
        self.busy += length
        self.free_at = time + length
        return self.free_at

    def is_done(self) -> bool:
        return self.backwards == len(self.backward) and not self.weights


def _needs(action: Action, stage: int, stages: int, chunks: int) -> Iterator[Action]:
    """The actions whose results an action needs, named as in ``done``: the chunk counts over all stages."""
    kind, chunk, micro = action
    place = chunk * stages + stage
    if kind == "F" and place > 0:
        yield Action("F", place - 1, micro)
    if kind == "B":
        yield Action("F", place, micro)
        if place < chunks * stages - 1:
            yield Action("B", place + 1, micro)


def make_schedule(kind: str, stages: int, micro_batches: int, chunks: int = 1) -> Schedule:
    """Simulates a pipeline.

    Args:
        kind: one of ``KINDS``.
        stages: how many processes there are.
        micro_batches: how many parts a batch has.
        chunks: how many pieces of the network each process has.

    Returns:
        the schedule.
    """
    line = [_Stage(number, stages, micro_batches, chunks, kind) for number in range(stages)]
    done: dict[Action, int] = {}
    time = 0
    while not all(stage.is_done() for stage in line):
        begun = False
        for stage in line:
            action = stage.choice(time, done) if stage.free_at <= time else None
            if action is not None:
                done[Action(action.kind, action.chunk * stages + stage.number, action.micro)] = stage.begin(action, time)
                begun = True
        if not begun and all(stage.free_at <= time for stage in line):
            for stage in line:  # all wait for a micro-batch that a limit keeps back
                stage.limit += 1
            continue
        time += 1
    length = max(stage.free_at for stage in line)
    return Schedule([stage.actions for stage in line], 1 - sum(stage.busy for stage in line) / (length * stages),
                    [stage.most_kept for stage in line])
