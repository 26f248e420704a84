"""Branches and loops on the values of tensors: both ways are interpreted, and what differs between them becomes a result.

A branch is interpreted twice: first to see what the two ways leave behind, then once more for the program, which gives back
exactly the tensors that differ. What differs otherwise (objects, lengths, types) cannot be one program and is declined.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import flow, known
from oar.jit._interpret.frame import Frame, Generator
from oar.jit._interpret.heap import Heap, clone, same_place
from oar.jit._interpret.machine import INSTRUCTIONS, Machine, returned
from oar.jit._interpret.numbers import Numbers
from oar.jit._interpret.world import ABSENT, Decline, Raised

__all__ = ["Interpreter"]

_DEEPEST = 12
_SEVERAL = -2  # a region that ends in one of two places, as a tensor says
_UNKNOWN: Any = type("_Unknown", (), {"__repr__": lambda self: "a variable that only one branch sets"})()


class _Probed(BaseException):
    """Enough has been seen; nothing of what was captured on the way is kept."""


class CountedRange(NamedTuple):
    """``range`` up to a number that a tensor holds."""

    start: Any
    stop: Any
    step: int


class RangeIterator(NamedTuple):
    """Its place is kept among the variables of the frame, under a name that no user can give."""

    key: str
    range: CountedRange


class _Way(NamedTuple):
    """How one branch ended: where, the frame then, the returned value, the contents of objects."""

    place: int
    frame: Frame
    value: Any
    heap: Heap


class Interpreter(Numbers, Machine):
    """The machine with branches and loops on tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._stops: dict[int, frozenset[int]] = {}  # by id of a frame: where its region ends
        self.demands: list[Tensor] = []
        self._ranges: list[CountedRange] = []
        self._twins: dict[Any, dict[int, int]] = {}  # by code: tests at the end of loops, and the same at their beginning
        self._loops: dict[int, tuple[int, int]] = {}  # by id of a frame: the header and the exit of its region

    # branching ---------------------------------------------------------------------------------------------

    def fork(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        index = frame.index - 1
        yes, no = (one.target, frame.index) if wanted else (frame.index, one.target)
        return self._branch(frame, index, value, (yes, list(frame.stack)), (no, list(frame.stack)))

    def fork_or_pop(self, frame: Frame, one: Any, value: Tensor, wanted: bool) -> Any:
        index, stack = frame.index - 1, list(frame.stack)
        jump, go_on = (one.target, stack), (frame.index, stack[:-1])
        yes, no = (jump, go_on) if wanted else (go_on, jump)
        return self._branch(frame, index, value, yes, no)

    def _branch(self, frame: Frame, index: int, value: Tensor, yes: tuple, no: tuple) -> Any:
        self.forked += 1
        if self.forked > _DEEPEST:
            raise Decline("branches on tensors are nested too deeply")
        try:
            pred = self.as_condition(value)
            stops = self._stops.get(id(frame), frozenset())
            loop = flow.loop_around(frame.code, index)
            if loop is not None and loop[0] not in stops and (yes[0] in loop[1]) != (no[0] in loop[1]):
                if frame.code.instructions[loop[0]].name != "FOR_ITER" or loop[0] == index:
                    return self._loop(frame, pred, yes, no, loop, stops)
            meet = flow.meeting_point(frame.code, index, stops)
            return self._both(frame, pred, yes, no, stops | ({meet} if meet != flow.END else set()))
        finally:
            self.forked -= 1

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

    def _both(
        self, frame: Frame, pred: Tensor, yes: tuple, no: tuple, ends: frozenset, loop: tuple[int, int] | None = None
    ) -> Any:
        loop = loop or self._loops.get(id(frame))
        for raising, start in ((yes, no), (no, yes)):
            if flow.only_raises(frame.code, raising[0], ends) and frame.code.handler_of(raising[0]) is None:
                return self._go_the_other_way(frame, pred, raising is yes, start, {})
        heap = Heap(self.world)
        ways: dict[bool, _Way | Raised] = {}

        def go(which: bool) -> _Way | Raised:
            ways[which] = self._way(frame, yes if which else no, ends, heap, loop)
            return ways[which]

        def look(which: bool) -> list:
            go(which)
            if len(ways) == 2:
                raise _Probed
            return []

        try:
            _C.cond(pred, lambda: look(True), lambda: look(False))
        except _Probed:
            pass
        heap.restore(self.world)
        for which, start in ((True, no), (False, yes)):
            if isinstance(ways.get(which), Raised):
                return self._go_the_other_way(frame, pred, which, start, ways)
        plan = _Merge(self, heap, ways[True], ways[False], loop)
        made = _C.cond(pred, lambda: plan.leaves(go(True)), lambda: plan.leaves(go(False)))
        heap.restore(self.world)
        return plan.apply(frame, ways[True], made)

    def _way(self, frame: Frame, start: tuple, ends: frozenset, heap: Heap, loop: tuple | None) -> _Way | Raised:
        """Interprets one way up to one of the ends."""
        heap.restore(self.world)
        other = frame.copy()
        other.index = start[0]
        other.stack = [clone(item, self.world) for item in start[1]]
        other.locals = {name: clone(item, self.world) for name, item in other.locals.items()}
        if loop is not None:
            self._loops[id(other)] = loop
        try:
            place, value = self.run_region(other, ends)
        except Raised as raised:
            return raised
        finally:
            self._loops.pop(id(other), None)
        return _Way(place, other, value, Heap(self.world))

    def _go_the_other_way(self, frame: Frame, pred: Tensor, raising: bool, start: tuple, ways: dict) -> None:
        """One way raises: the program is for calls that do not go it, and says so if one does."""
        if isinstance(ways.get(not raising), Raised):
            raise Decline("both ways raise")
        if self.forked > 1:
            raise Decline("it raises in a branch on a tensor within another")
        self.demands.append(_C.ops.logical_not(pred) if raising else pred)
        frame.index, frame.stack = start[0], list(start[1])

    def run_region(self, frame: Frame, ends: frozenset, begin: bool = False) -> tuple[int, Any]:
        """Runs until one of these instructions is next (its index is returned) or the function returns."""
        before = self._stops.get(id(frame))
        self._stops[id(frame)] = ends
        self.frames.append(frame)
        try:
            twins = self._twins.get(frame.code, {})
            while True:
                frame.index = twins.get(frame.index, frame.index)
                if frame.index in ends and not begin:
                    return frame.index, None
                begin = False
                one = frame.code.instructions[frame.index]
                frame.index += 1
                todo = INSTRUCTIONS.get(one.name)
                if todo is None:
                    raise Decline(f"it uses the instruction {one.name}")
                try:
                    ended = todo(self, frame, one)
                except Raised as raised:
                    self.unwind(frame, raised)
                    continue
                if ended is not None:
                    if ended[0] == "several":
                        return _SEVERAL, ended[1]
                    if ended[0] != "returned":
                        raise Decline("it yields in a branch on a tensor")
                    return flow.END, ended[1]
        except (Decline, Raised):
            self._declined_at = self._declined_at or self.where()
            raise
        finally:
            self.frames.pop()
            if before is None:
                self._stops.pop(id(frame), None)
            else:
                self._stops[id(frame)] = before

    def origin_of(self, value: Any) -> Any:
        """Which of the caller's tensors, or of those outside, a value is: a number, a tensor that tells it, or None."""
        if not isinstance(value, Tensor):
            return None
        if id(value) in self.world.origins:
            return self.world.origins[id(value)][1]
        if self.world.is_input(value) or self.world.is_outside(value):
            return self.world.number_of(value)
        return None

    def with_origin(self, tensor: Tensor, origin: Tensor) -> Tensor:
        """A tensor that may be one of those from outside: the run tells which."""
        self.world.origins[id(tensor)] = (tensor, origin)
        return tensor

    def in_loop(self, frame: Frame) -> bool:
        """Whether the frame goes over one round of a loop on tensors."""
        return id(frame) in self._loops

    def check_known(self, value: Any) -> None:
        if value is _UNKNOWN:
            raise Decline("it reads a variable that only one branch sets")

    # loops -------------------------------------------------------------------------------------------------

    def _loop(self, frame: Frame, pred: Tensor, yes: tuple, no: tuple, loop: tuple, outer: frozenset) -> Any:
        """Goes on with the round that is under way, then with more rounds for as long as tensors say."""
        header = loop[0]
        self._twins.setdefault(frame.code, {}).update(flow.twin_test(frame.code, header))
        leaves = flow.exit_of(frame.code, loop)
        if leaves is None:
            raise Decline("a loop on a tensor is left in several ways")
        names = [*flow.assigned(frame.code, flow.reachable(frame.code, [header], frozenset({leaves}))),
                 *(name for name in frame.locals if name.startswith("<range"))]
        ends = frozenset({header, leaves})
        ended = self._both(frame, pred, yes, no, outer | ends, loop=(header, leaves))
        if ended is None:
            return None  # every way leads to one place
        go_on = ended[1]
        held = [name for name in names if self._variable(frame, name) not in (ABSENT, _UNKNOWN)]
        first = [self.as_tensor(self._variable(frame, name)) for name in held]
        kinds = [self.kind_of(self._variable(frame, name)) for name in held]
        constant = {name: tensor.stop_gradient for name, tensor in zip(held, first)}
        heap = Heap(self.world)

        def round_of(variables: list) -> list:
            heap.restore(self.world)
            other = frame.copy()
            other.index, other.stack = header, list(ended[2])
            for name, kind, tensor in zip(held, kinds, variables[1:]):
                tensor = tensor.detach() if constant[name] else tensor
                self._set_variable(other, name, self.tagged(tensor, kind))
            for name in set(names) - set(held):
                self._set_variable(other, name, ABSENT)
            self._loops[id(other)] = (header, leaves)
            place, value = self.run_region(other, ends, begin=True)
            self._loops.pop(id(other), None)
            now = Heap(self.world)
            if heap.changed(now) or not heap.same_writes(now):
                raise Decline("a loop on a tensor changes an object")
            if place == flow.END:
                raise Decline("it returns from a loop on a tensor")
            again = value[0] if place == _SEVERAL else self.as_tensor(place == header)
            carried = [self._carried(other, name, kind) for name, kind in zip(held, kinds)]
            for name, tensor in zip(held, carried):
                if constant[name] != tensor.stop_gradient:
                    raise Decline(f"whether {name} asks for its gradient depends on the number of rounds")
            return [again, *carried]

        made = _C.while_loop(lambda variables: [variables[0]], round_of, [go_on, *first])
        heap.restore(self.world)
        for name, kind, tensor in zip(held, kinds, made[1:]):
            tensor = tensor.detach() if constant[name] else tensor
            self._set_variable(frame, name, self.tagged(tensor, kind))
        for name in set(names) - set(held):
            self._set_variable(frame, name, _UNKNOWN)
        frame.index, frame.stack = leaves, list(ended[3])
        return None

    def _carried(self, frame: Frame, name: str, kind: type | None) -> Tensor:
        now = self._variable(frame, name)
        if now is ABSENT or now is _UNKNOWN or self.kind_of(now) is not kind:
            raise Decline(f"the variable {name} of a loop changes its type")
        return self.as_tensor(now)

    def range_of(self, args: list) -> Any:
        if not any(isinstance(a, Tensor) and _C.is_symbolic(a) for a in args):
            return super().range_of(args)
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if type(step) is not int or step <= 0:
            raise Decline("it counts downwards, or in steps that a tensor tells")
        return CountedRange(*(self._whole_number(v) for v in (start, stop)), step)

    def _whole_number(self, value: Any) -> Any:
        if type(value) is int or self.kind_of(value) is int:
            return value
        if isinstance(value, Tensor) and value.dtype.name in ("int32", "int64") and value.size == 1:
            return self.tagged(_C.ops.cast(_C.ops.reshape(value, []), "int64"), int)
        raise Decline("it counts to something that is no whole number")

    def iterator(self, value: Any) -> Any:
        if isinstance(value, CountedRange):
            key = f"<range {len(self._ranges)}>"
            self._ranges.append(value)
            self.frames[-1].locals[key] = value.start
            return RangeIterator(key, value)
        return super().iterator(value)

    def next_in_range(self, frame: Frame, one: Any, it: RangeIterator) -> Any:
        """The instruction FOR_ITER on a range that a tensor ends."""
        index, at = frame.index - 1, frame.locals[it.key]
        after = self.binary("+", at, it.range.step)
        value = self.compare("<", at, it.range.stop)
        below = list(frame.stack[:-1])
        frame.locals[it.key] = after
        if not isinstance(value, Tensor):
            raise Decline("a range that a tensor ends is plain")
        return self._branch(frame, index, value, (frame.index, [*below, it, at]), (one.target, below))

    def _variable(self, frame: Frame, name: str) -> Any:
        if name in frame.cells:
            return self.world.cell(frame.cells[name], name)
        return frame.locals.get(name, ABSENT)

    def _set_variable(self, frame: Frame, name: str, value: Any) -> None:
        if name in frame.cells:
            self.world.set_cell(frame.cells[name], value)
        elif value is ABSENT:
            frame.locals.pop(name, None)
        else:
            frame.locals[name] = value


class _Merge:
    """Which tensors two ways leave in the places where they differ, and the state that joins them."""

    def __init__(
        self, machine: Interpreter, heap: Heap, yes: _Way, no: _Way, loop: tuple[int, int] | None
    ) -> None:
        if not heap.same_writes(yes.heap) or not heap.same_writes(no.heap):
            raise Decline("a branch on a tensor changes something outside")
        self.machine, self.place, self._loop = machine, yes.place, loop
        self._paths: list[tuple] = []
        self._shared = set(heap.objects)
        self._places = {True: yes.place, False: no.place}
        if yes.place != no.place or yes.place == _SEVERAL:
            self._several(yes, no)
        elif len(yes.frame.stack) != len(no.frame.stack):
            raise Decline("the branches of a tensor leave different values")
        names = [*yes.frame.locals, *(n for n in no.frame.locals if n not in yes.frame.locals)]
        self._locals = {n: self._joined(yes.frame.locals.get(n, ABSENT), no.frame.locals.get(n, ABSENT), ("local", n))
                        for n in names} if self.place != flow.END else {}
        pairs = enumerate(zip(yes.frame.stack, no.frame.stack)) if self.place not in (flow.END, _SEVERAL) else ()
        self._stack = [self._joined(a, b, ("stack", i)) for i, (a, b) in pairs]
        self._value = self._joined(yes.value, no.value, ("value",)) if self.place == flow.END else None
        touched = {*heap.changed(yes.heap), *heap.changed(no.heap)}
        self._contents = {key: self._content(heap.objects[key], yes, no, key) for key in touched}

    def _several(self, yes: _Way, no: _Way) -> None:
        """The ways end in different places, of which a loop has two: its header and its exit."""
        if self._loop is None or not {yes.place, no.place} <= {*self._loop, _SEVERAL}:
            raise Decline("the branches of a tensor go on in different places")  # such as a loop that returns
        self.place = _SEVERAL
        self._stacks: dict[int, list] = {}
        for way in (yes, no):
            found = {way.place: way.frame.stack} if way.place != _SEVERAL else way.value[1]
            for place, stack in found.items():
                known_one = self._stacks.setdefault(place, stack)
                if len(known_one) != len(stack) or any(
                        a is not b and not _same_item(a, b) for a, b in zip(known_one, stack)):
                    raise Decline("the branches of a tensor leave different values")

    def _flag(self, way: _Way) -> Tensor:
        """Whether the loop goes on."""
        return way.value[0] if way.place == _SEVERAL else self.machine.as_tensor(way.place == self._loop[0])

    def _content(self, value: Any, yes: _Way, no: _Way, key: int) -> Any:
        a, b = yes.heap.contents[key], no.heap.contents[key]
        if type(a) is not type(b) or not isinstance(a, (list, dict, tuple)) or isinstance(value, set) and a != b:
            raise Decline("the branches of a tensor change an object in different ways")
        return self._joined(a, b, ("heap", key), inside=True)

    def _joined(self, a: Any, b: Any, path: tuple, inside: bool = False) -> Any:
        """A function from the tensors of the run to the value."""
        if a is b or _C.Guards.same(a, b):
            return lambda made: a
        machine = self.machine
        if a is ABSENT or b is ABSENT or a is _UNKNOWN or b is _UNKNOWN:
            return lambda made: _UNKNOWN
        if machine.kind_of(a) is not None or machine.kind_of(b) is not None or isinstance(a, Tensor) or isinstance(b, Tensor):
            if machine.kind_of(a) is not machine.kind_of(b) or isinstance(a, Tensor) and a.dtype != machine.as_tensor(b).dtype:
                raise Decline("the branches of a tensor give values of different types")
            place, kind = len(self._paths), machine.kind_of(a)
            if kind is None and a.stop_gradient != b.stop_gradient:
                raise Decline("of the branches of a tensor one gives a tensor that asks for its gradient, one does not")
            self._paths.append(path)
            if kind is None and a.stop_gradient and b.stop_gradient:
                if machine.origin_of(a) is machine.origin_of(b) is None:
                    return lambda made: made[place].detach()
            if machine.origin_of(a) is machine.origin_of(b) is None:
                return lambda made: machine.tagged(made[place], kind)
            self._paths.append(("origin", *path))
            return lambda made: machine.with_origin(made[place], made[place + 1])
        if isinstance(a, Generator) or type(a) in known.ITERATORS:
            return (lambda made: a) if same_place(a, b) else (lambda made: _UNKNOWN)
        if type(a) is not type(b) or not (inside or id(a) not in self._shared or isinstance(a, tuple)):
            raise Decline("the branches of a tensor give different objects")
        return self._container(a, b, path, inside)

    def _container(self, a: Any, b: Any, path: tuple, inside: bool) -> Any:
        world = self.machine.world
        if type(a) in (list, tuple) and len(a) == len(b):
            parts = [self._joined(x, y, (*path, i)) for i, (x, y) in enumerate(zip(a, b))]
            build = tuple if type(a) is tuple else (list if inside else lambda items: world.new(list(items)))
            return lambda made: build([part(made) for part in parts])
        if type(a) is dict and list(a) == list(b):
            named = {k: self._joined(a[k], b[k], (*path, k)) for k in a}
            return lambda made: (lambda d: d if inside else world.new(d))({k: part(made) for k, part in named.items()})
        raise Decline("the branches of a tensor give different objects")

    def leaves(self, way: Any) -> list[Tensor]:
        """The tensors that differ, of one way."""
        if isinstance(way, Raised) or way.place not in self._places.values():
            raise Decline("a branch on a tensor goes another way when it is looked at again")
        found = [self.machine.as_tensor(self._find(way, path)) for path in self._paths]
        return [*found, self._flag(way)] if self.place == _SEVERAL else found

    def _find(self, way: _Way, path: tuple) -> Any:
        kind, *rest = path
        if kind == "origin":
            origin = self.machine.origin_of(self._find(way, tuple(rest)))
            return 0 if origin is None else origin
        if kind == "value":
            value = way.value
        elif kind == "heap":
            value = way.heap.contents[rest.pop(0)]
        else:
            value = (way.frame.locals if kind == "local" else way.frame.stack)[rest.pop(0)]
        for key in rest:
            value = value[key]
        return value

    def apply(self, frame: Frame, way: _Way, made: list[Tensor]) -> Any:
        """Puts the joined state into the frame; where both ways return, returns what they return."""
        for key, part in self._contents.items():
            from oar.jit._interpret.heap import _fill

            _fill(self.machine.world.fresh_objects()[key], part(made))
        if self.place == flow.END:
            return returned(self._value(made))
        values = {n: part(made) for n, part in self._locals.items()}
        frame.locals.clear()
        frame.locals.update({n: v for n, v in values.items() if v is not ABSENT})
        if self.place == _SEVERAL:
            stacks = [self._stacks.get(place) for place in self._loop]
            return ("several", (made[-1], self._stacks)) if self.machine.in_loop(frame) else ("loop", made[-1], *stacks)
        frame.stack[:] = [part(made) for part in self._stack]
        frame.caught = way.frame.caught
        frame.index = self.place
        return None


def _same_item(a: Any, b: Any) -> bool:
    return _C.Guards.same(a, b) or same_place(a, b)
