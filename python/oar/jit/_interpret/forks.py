"""Branches on the values of tensors: both ways are interpreted, and what differs between them becomes a result.

A branch is interpreted at least twice: first to see the states after both sides, then once more for the program, which returns
exactly the tensors that differ. What differs otherwise (objects, lengths, types) cannot be one program and is declined.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import asking, flow, known
from oar.jit._interpret.frame import Frame, Generator
from oar.jit._interpret.heap import Heap, clone
from oar.jit._interpret.machine import INSTRUCTIONS, Machine, returned
from oar.jit._interpret.numbers import Numbers
from oar.jit._interpret.ways import RETURNED, SEVERAL, UNKNOWN, Joint, Merge, Places, StalePlan, Way
from oar.jit._interpret.world import Decline, Raised

__all__ = ["Forks", "restored_modes", "set_modes"]

_DEEPEST = 20
_MOST_REGIONS = 800
# Every region keeps the contents of all objects, so its cost grows with them. This many take about a second.
_MOST_CONTENTS = 200_000


class _Probed(BaseException):
    """Enough is known; nothing that was captured so far is kept."""


class Forks(Numbers, Machine):
    """The machine with branches on tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._stops: dict[int, frozenset[int]] = {}  # by id of a frame: where its region ends
        self.twins: dict[Any, dict[int, int]] = {}  # by code: tests at the end of loops, and the same at their beginning
        self._raised_around: list[list[Tensor]] = []
        self._before: list[dict[int, Any]] = []  # by region: the objects that were there when it began
        self._trail: list[Any] = []  # the ways that lead to the region that is interpreted
        self._forks: list[int] = [0]  # by region: how many branches it has had
        self._plans: dict[tuple, Any] = {}  # by trail: how a branch is joined, or which of its ways raises
        self._regions = self._contents = 0
        self.demands: list[Tensor] = []  # conditions under which the program is valid for the call

    def start(self, function: Any, args: list, kwargs: dict) -> Any:
        result = super().start(function, args, kwargs)
        self.demands = [_C.ops.logical_not(flag) for flag in self.raised]
        return result

    # branching ---------------------------------------------------------------------------------------------

    def fork(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        index = frame.index - 1
        yes, no = (one.target, frame.index) if wanted else (frame.index, one.target)
        return self.branch(frame, index, value, (yes, list(frame.stack)), (no, list(frame.stack)))

    def fork_or_pop(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        index, stack = frame.index - 1, list(frame.stack)
        jump, go_on = (one.target, stack), (frame.index, stack[:-1])
        yes, no = (jump, go_on) if wanted else (go_on, jump)
        return self.branch(frame, index, value, yes, no)

    def branch(self, frame: Frame, index: int, value: Tensor, yes: tuple, no: tuple) -> Any:
        """Goes both ways from an instruction. Each is a place and the stack there."""
        self.forked += 1
        if self.forked > _DEEPEST:
            raise Decline("branches on tensors are nested too deeply")
        try:
            pred = self.as_condition(value)
            stops = self.stops_of(frame)
            loop = flow.loop_around(frame.code, index)
            starts = Places({yes[0]: yes[1]}), Places({no[0]: no[1]})
            if loop is not None and loop[0] not in stops and (yes[0] in loop[1]) != (no[0] in loop[1]):
                if frame.code.instructions[loop[0]].name != "FOR_ITER" or loop[0] == index:
                    return self.loop(frame, pred, starts, loop, stops)
            ended = self.both(frame, pred, starts, stops | self._meeting_points(frame, index, yes[0], no[0]))
            return self.dispatch(frame, ended) if ended.leads_on(stops) else self.go_on(frame, ended)
        finally:
            self.forked -= 1

    def _meeting_points(self, frame: Frame, index: int, yes: int, no: int) -> frozenset[int]:
        """Where the sides of a branch join. Those that return are separate, if the others join."""
        stops = self.stops_of(frame)
        meet = flow.meeting_point(frame.code, (index,), stops)
        if meet == flow.END:
            meet = flow.meeting_point(frame.code, (index,), stops, returning=False)
            if meet in (yes, no):  # what follows is a part of that way
                return frozenset()
        return frozenset({meet} - {flow.END})

    def loop(self, frame: Frame, pred: Tensor, starts: tuple[Places, Places], loop: tuple, stops: frozenset) -> Any:
        raise NotImplementedError

    def stops_of(self, frame: Frame) -> frozenset[int]:
        return self._stops.get(id(frame), frozenset())

    def as_condition(self, value: Tensor) -> Tensor:
        """One bool."""
        count = 1
        for size in value.shape:
            count = count * size
        if not isinstance(count, int) or count != 1:
            raise Decline("it branches on a tensor of several values")
        ops = _C.ops
        flat = ops.reshape(value, []) if value.ndim else value
        return flat if flat.dtype.name == "bool" else ops.not_equal(flat, ops.zeros([], flat.dtype))

    def both(self, frame: Frame, pred: Tensor, starts: tuple[Places, Places], ends: frozenset) -> Places:
        """Interprets both sides up to these ends and joins them in the frame. Returns the places where it continues."""
        self._forks[-1] += 1
        trail = *self._trail, self._forks[-1]
        yes, no = starts
        for raising, other in ((yes, no), (no, yes)):
            if raising.only not in (SEVERAL, flow.END) and flow.only_raises(frame.code, raising.only, ends) and (
                    frame.code.handler_of(raising.only) is None):
                return self._go_the_other_way(pred, raising is yes, other)
        heap = Heap(self.world)
        older = {id(t) for t in _tensors([frame.locals, heap.contents, *(start.stacks for start in starts)])}
        ways: dict[bool, Any] = {}  # of Way or Raised
        mode = modes()

        def go(which: bool) -> Way | Raised:
            set_modes(mode)
            ways[which] = self._way(frame, starts[0] if which else starts[1], ends, heap, (trail[-1], which))
            return ways[which]

        plan = self._plans.get(trail)
        try:
            if plan is None or isinstance(plan, Merge) and not plan.knows(heap):
                raise StalePlan
            made = self._join_ways(pred, plan, go, heap)
        except StalePlan:
            plan = self._plans[trail] = self._look(pred, go, ways, heap)
            made = self._join_ways(pred, plan, go, heap)
        if not isinstance(plan, Merge):
            return self._go_the_other_way(pred, plan, starts[1] if plan else starts[0])
        heap.restore(self.world)
        self.world.asked_one_way |= ways[True].asked ^ ways[False].asked
        return plan.apply(frame, Joint(pred, (ways[True], ways[False]), older, made, {}))

    def _join_ways(self, pred: Tensor, plan: Any, go: Callable, heap: Heap) -> list[Tensor]:
        if not isinstance(plan, Merge):
            return []

        def leaves(which: bool) -> list[Tensor]:
            made = plan.leaves(go(which), which, heap)
            _C.set_grad_enabled(True)
            return made

        with restored_modes():
            _C.set_grad_enabled(True)  # tensors that require a gradient pass through, whatever the mode in the branch
            return _C.cond(pred, lambda: leaves(True), lambda: leaves(False))

    def _look(self, pred: Tensor, go: Callable, ways: dict, heap: Heap) -> Merge | bool:
        """Goes both ways to see how they are joined, or which of them raises. Nothing of that is kept."""
        ways.clear()

        def look(which: bool) -> list:
            go(which)
            if len(ways) == 2:
                raise _Probed
            return []

        with restored_modes():
            try:
                _C.cond(pred, lambda: look(True), lambda: look(False))
            except _Probed:
                pass
        heap.restore(self.world)
        raising = [which for which in (True, False) if isinstance(ways[which], Raised)]
        if len(raising) == 2:
            raise Decline("both ways raise")
        return raising[0] if raising else Merge(self, heap, ways[True], ways[False])

    def go_on(self, frame: Frame, places: Places) -> Any:
        """After a branch: continues at the one place, returns, or reports that there are several."""
        if places.only == SEVERAL:
            return "several", places
        if places.only in places.modes:
            set_modes(places.modes[places.only])
        if places.only == flow.END:
            self.check_known(frame.locals[RETURNED])
            return returned(frame.locals[RETURNED])
        frame.index, frame.stack = places.only, list(places.stacks[places.only])
        for name in places.missing.get(places.only, ()):
            frame.locals[name] = UNKNOWN
        return None

    def dispatch(self, frame: Frame, places: Places) -> Any:
        """Continues from several places, selected by a tensor."""
        if places.only != SEVERAL:
            return self.go_on(frame, places)
        first, *rest = sorted(places.stacks)
        stops = self.stops_of(frame)
        # One that has returned waits for the others to return.
        meet = flow.END if first == flow.END else flow.meeting_point(frame.code, (first, *rest), stops)
        pred = _C.ops.equal(places.which, self.as_tensor(first))
        starts = places.select([first]), places.select(rest)
        ended = self.both(frame, pred, starts, stops | ({meet} - {flow.END}))
        return self.dispatch(frame, ended) if ended is starts[1] or ended.leads_on(stops) else self.go_on(frame, ended)

    def _way(self, frame: Frame, start: Places, ends: frozenset, heap: Heap, step: tuple) -> Way | Raised:
        """Interprets one way up to one of the ends."""
        heap.restore(self.world)
        other = frame.copy()
        other.stack = []
        other.locals = {name: clone(item, self.world) for name, item in other.locals.items()}
        start = start._replace(stacks={
            place: [clone(item, self.world) for item in stack] for place, stack in start.stacks.items()})
        try:
            return self.run_region(other, ends, heap, step, lambda: self.dispatch(other, start))
        except Raised as raised:
            return raised

    def _go_the_other_way(self, pred: Tensor, raising: bool, start: Places) -> Places:
        """One side raises: the program is for calls that do not take it, and reports one that does."""
        self.raised.append(pred if raising else _C.ops.logical_not(pred))
        return start

    def has_raised(self) -> list[Tensor]:
        """Conditions under which the function has raised by now: what follows must come to an end all the same."""
        return [flag for flags in (*self._raised_around, self.raised) for flag in flags]

    def any_of(self, flags: list[Tensor]) -> Tensor | None:
        """One flag for several."""
        made = None
        for flag in flags:
            made = flag if made is None else _C.ops.logical_or(made, flag)
        return made

    # regions -----------------------------------------------------------------------------------------------

    def run_region(self, frame: Frame, ends: frozenset, heap: Heap, step: Any, begin: Callable[[], Any]) -> Way:
        """Runs until one of these instructions is next, or the function returns. ``step``: names it in the trail."""
        self._regions += 1
        self._contents += len(heap.objects)
        if self._regions > _MOST_REGIONS or self._contents > _MOST_CONTENTS:
            raise Decline("it has too many branches on tensors")
        before = self._stops.get(id(frame))
        self._stops[id(frame)] = ends
        self.frames.append(frame)
        self._raised_around.append(self.raised)
        self._before.append(heap.objects)
        self._trail.append(step)
        self._forks.append(0)
        asked, self.world.asked = self.world.asked, set()
        self.raised = []
        try:
            places = self._run_to(frame, ends, begin)
            return Way(places, frame, Heap(self.world), self.any_of(self.raised), frozenset(self.world.asked))
        except (Decline, Raised):
            self._declined_at = self._declined_at or self.where()
            raise
        finally:
            self.raised = self._raised_around.pop()
            self.world.asked |= asked
            self._before.pop()
            self._trail.pop()
            self._forks.pop()
            self.frames.pop()
            if before is None:
                self._stops.pop(id(frame), None)
            else:
                self._stops[id(frame)] = before

    def _run_to(self, frame: Frame, ends: frozenset, begin: Callable[[], Any]) -> Places:
        ended = begin()
        twins = self.twins.get(frame.code, {})
        while ended is None:
            frame.index = twins.get(frame.index, frame.index)
            if frame.index in ends:
                return Places({frame.index: frame.stack}, modes={frame.index: modes()})
            ended = self.step(frame)
        if ended[0] == "several":
            return ended[1]
        if ended[0] != "returned":
            raise Decline("it yields in a branch on a tensor")
        frame.locals[RETURNED] = ended[1]
        return Places({flow.END: []}, modes={flow.END: modes()})

    def step(self, frame: Frame) -> Any:
        """One instruction."""
        one = frame.code.instructions[frame.index]
        frame.index += 1
        todo = INSTRUCTIONS.get(one.name)
        if todo is None:
            raise Decline(f"it uses the instruction {one.name}")
        try:
            return todo(self, frame, one)
        except Raised as raised:
            self.unwind(frame, raised)
            return None

    def check_iterator(self, value: Any) -> None:
        if self._before and id(value) in self._before[-1]:
            raise Decline("it goes on with an iterator in a branch on a tensor")  # the other way would go on with it too
        if self.world.unknown and not isinstance(value, Generator):
            self._check_source(value)

    def _check_source(self, iterator: Any) -> None:
        """Declines an iterator over an object whose content is not known."""
        for source in iterator.__reduce__()[1]:
            self.world.check_content(source)
            if type(source) in known.ITERATORS:
                self._check_source(source)

    # what the run determines about a tensor -----------------------------------------------------------------------

    def origin_of(self, value: Any) -> Any:
        """Which of the caller's tensors, or of those outside, a value is: a number, a tensor that holds it, or None."""
        if not isinstance(value, Tensor):
            return None
        if id(value) in self.world.origins:
            return self.world.origins[id(value)][1]
        if self.world.is_input(value) or self.world.is_outside(value):
            return self.world.number_of(value)
        return None

    def with_origin(self, tensor: Tensor, origin: Tensor) -> Tensor:
        """A tensor that may be one of those from outside: the run determines which."""
        self.world.origins[id(tensor)] = (tensor, origin)
        return tensor

    def joined(self, tensor: Tensor, parts: list, older: set[int]) -> None:
        """Records the tensors, created by the function, that a joined one may be."""
        known_ones = self.world.joined
        may_be = [t for p in parts if isinstance(p, Tensor) for t in known_ones.get(id(p), (p, []))[1]]
        may_be += [p for p in parts if isinstance(p, Tensor) and id(p) in older]
        if may_be:
            known_ones[id(tensor)] = tensor, may_be

    def asks(self, value: Any) -> Any:
        return asking.asks(self.world, value)

    def asking(self, tensor: Tensor, asks: Any) -> Tensor:
        return asking.marked(self.world, tensor, asks)

    def check_known(self, value: Any) -> None:
        if value is UNKNOWN:
            raise Decline("it reads a variable that only one branch sets")


def modes() -> tuple:
    """What a thread switches on and off: gradients, mixed precision."""
    return _C.is_grad_enabled(), _C.get_autocast()


def set_modes(wanted: tuple) -> None:
    _C.set_grad_enabled(wanted[0])
    _C.set_autocast(*wanted[1])


@contextlib.contextmanager
def restored_modes() -> Iterator[None]:
    """Puts them back afterwards."""
    before = modes()
    try:
        yield
    finally:
        set_modes(before)


def _tensors(values: Any) -> list[Tensor]:
    """The tensors in nested containers of the interpreter's own."""
    found, waiting = [], [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in (list, tuple):
            waiting += value
        elif type(value) is dict:
            waiting += value.values()
    return found
