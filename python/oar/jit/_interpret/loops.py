"""Loops for as long as tensors say: one round is interpreted, and what it changes is carried from round to round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import flow, grown
from oar.jit._interpret.forks import Forks, restored_modes, set_modes
from oar.jit._interpret.frame import Frame
from oar.jit._interpret.heap import Heap, clone, fill, same_place
from oar.jit._interpret.ways import SEVERAL, UNKNOWN, Places, Way, is_set
from oar.jit._interpret.world import ABSENT, Decline

__all__ = ["Interpreter"]

_MOST_TRIES = 32


class CountedRange(NamedTuple):
    """``range`` up to a number that a tensor holds."""

    start: Any
    stop: Any
    step: int


class RangeIterator(NamedTuple):
    """Its place is kept among the variables of the frame, under a name that no user can give."""

    key: str
    range: CountedRange


class Interpreter(Forks):
    """The machine with branches and loops on tensors."""

    def __init__(self) -> None:
        super().__init__()
        self._ranges: list[CountedRange] = []

    def loop(self, frame: Frame, pred: Tensor, starts: tuple[Places, Places], loop: tuple, stops: frozenset) -> Any:
        """Continues the current iteration, then runs more iterations as long as tensors say so."""
        code, header = frame.code, loop[0]
        self.twins.setdefault(code, {}).update(flow.twin_test(code, header))
        exits = flow.exits_of(code, loop)
        if not exits:
            raise Decline("a loop on a tensor has no end")
        places = self.both(frame, pred, starts, stops | exits | {header})
        if header not in places.stacks or places.only != SEVERAL:
            return self.dispatch(frame, places) if places.leads_on(stops) else self.go_on(frame, places)
        if not set(places.stacks) <= exits | {header}:
            raise Decline("a loop on a tensor is left in several ways")
        names = flow.assigned(code, flow.reachable(code, [header], exits))
        names = [*(n for n in names if n not in frame.cells), *(n for n in frame.locals if n.startswith("<range"))]
        return self.dispatch(frame, _Rounds(self, frame, places, header, exits, names).run())

    def range_of(self, args: list) -> Any:
        sizes = [None if self.world.keeps_tensors else self.known_size(a) for a in args]
        args = [a if size is None else size for a, size in zip(args, sizes)]
        if not any(isinstance(a, Tensor) and _C.is_symbolic(a) for a in args):
            return super().range_of(args)
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        if type(step) is not int or step <= 0:
            raise Decline("it counts downwards, or in steps that depend on a tensor")
        return CountedRange(self._whole_number(start), self._whole_number(stop), step)

    def _whole_number(self, value: Any) -> Any:
        if type(value) is int or self.kind_of(value) is int:
            return value
        if isinstance(value, Tensor) and value.dtype.name in ("int32", "int64") and value.size == 1:
            return self.tagged(_C.ops.cast(_C.ops.reshape(value, []), "int64"), int)
        raise Decline("it counts to something that is not a whole number")

    def iterator(self, value: Any) -> Any:
        if isinstance(value, CountedRange):
            self._ranges.append(value)
            return self._counted(self.frames[-1], f"<range {len(self._ranges)}>", value)
        return super().iterator(value)

    def iterator_of_loop(self, frame: Frame, value: Any) -> Any:
        """By the line that begins the loop: when it begins again, in another round of a loop around it, the last one has ended."""
        if isinstance(value, CountedRange):
            return self._counted(frame, f"<range at {frame.index}>", value)
        return super().iterator_of_loop(frame, value)

    def _counted(self, frame: Frame, key: str, value: CountedRange) -> RangeIterator:
        frame.locals[key] = value.start
        return RangeIterator(key, value)

    def next_in_range(self, frame: Frame, one: Any, it: RangeIterator) -> Any:
        """The instruction FOR_ITER on a range that a tensor ends."""
        if it.key not in frame.locals:
            raise Decline("another function, or a comprehension, iterates over a range that a tensor ends")
        index, at = frame.index - 1, frame.locals[it.key]
        after = self.binary("+", at, it.range.step)
        value = self.compare("<", at, it.range.stop)
        below = list(frame.stack[:-1])
        frame.locals[it.key] = after
        if not isinstance(value, Tensor):
            raise Decline("a range that a tensor ends is plain")
        return self.branch(frame, index, value, (frame.index, [*below, it, at]), (one.target, below))


class _Again(BaseException):
    """An iteration showed that more is carried, or differently: it is captured again."""


class _Leaf:
    """A tensor, or a number, that is carried between iterations; ``told``: a flag says whether it requires a gradient."""

    def __init__(self, machine: Interpreter, value: Any) -> None:
        self.kind = machine.kind_of(value)
        self.first = machine.as_tensor(value)
        self._asks, self._origin = machine.asks(value), machine.origin_of(value)
        self._told, self._has_origin = isinstance(self._asks, Tensor), self._origin is not None

    def variables(self, machine: Interpreter, value: Any) -> list[Tensor]:
        """What the loop carries for it, at the end of a round."""
        if machine.kind_of(value) is not self.kind or not isinstance(value, Tensor) and self.kind is None:
            raise Decline("a variable of a loop changes its type")
        asks, origin = machine.asks(value), machine.origin_of(value)
        if not self._told and asks is not self._asks or not self._has_origin and origin is not None:
            self._told = self._told or asks is not self._asks
            self._has_origin = self._has_origin or origin is not None
            raise _Again
        return self._listed(machine, machine.as_tensor(value), asks, origin)

    def before(self, machine: Interpreter) -> list[Tensor]:
        return self._listed(machine, self.first, self._asks, self._origin)

    def _listed(self, machine: Interpreter, value: Tensor, asks: Any, origin: Any) -> list[Tensor]:
        made = [value]
        if self._told:
            made.append(machine.as_tensor(asks))
        if self._has_origin:
            made.append(machine.as_tensor(0 if origin is None else origin))
        return made

    def taken(self, machine: Interpreter, given: Iterator[Tensor]) -> Any:
        """The value that the carried tensors represent."""
        tensor = next(given)
        asks = next(given) if self._told else self._asks
        origin = next(given) if self._has_origin else None
        if self.kind is not None:
            return machine.tagged(tensor, self.kind)
        tensor = machine.asking(tensor, asks)
        machine.joined(tensor, [self.first], {id(self.first)})
        return tensor if origin is None else machine.with_origin(tensor, origin)


class _Tree:
    """A value with tensors or numbers in it. Whatever else it holds stays the same in every round."""

    def __init__(self, machine: Interpreter, value: Any, inside: bool = False) -> None:
        self._machine, self._kept = machine, value
        self._leaf = self._keys = None
        self._parts: list[_Tree] = []
        if isinstance(value, Tensor) or machine.kind_of(value) is not None:
            self._leaf = _Leaf(machine, value)
        elif type(value) is tuple or inside:
            self._keys = list(value) if isinstance(value, dict) else range(len(value))
            self._parts = [_Tree(machine, value[key]) for key in self._keys]

    def before(self) -> list[Tensor]:
        if self._leaf is not None:
            return self._leaf.before(self._machine)
        return [tensor for part in self._parts for tensor in part.before()]

    def variables(self, value: Any) -> list[Tensor]:
        if self._leaf is not None:
            return self._leaf.variables(self._machine, value)
        kept = self._kept
        if self._keys is None:
            if value is kept or _C.Guards.same(value, kept) or same_place(value, kept):
                return []
            raise Decline("a variable of a loop is another object in every round")
        if type(value) is not type(kept) or len(value) != len(kept) or isinstance(kept, dict) and list(value) != self._keys:
            raise Decline("a loop on a tensor changes the length of an object")
        return [tensor for key, part in zip(self._keys, self._parts) for tensor in part.variables(value[key])]

    def taken(self, given: Iterator[Tensor]) -> Any:
        if self._leaf is not None:
            return self._leaf.taken(self._machine, given)
        if self._keys is None:
            return self._kept
        items = [part.taken(given) for part in self._parts]
        return dict(zip(self._keys, items)) if isinstance(self._kept, dict) else type(self._kept)(items)


class _GrownList:
    """The content of a list to which rounds append."""

    def __init__(self, machine: Interpreter, key: int, before: list, after: list) -> None:
        self._machine, self._key, self._before = machine, key, before
        self._count = grown.common_start(before, after)
        self._dtype, self._shape = grown.rows_of(machine, after[self._count:], before[self._count:])
        self._leaf: _Leaf | None = None

    def before(self) -> list[Tensor]:
        if self._leaf is None:
            self._leaf = _Leaf(self._machine, self._stacked(self._before))
        return self._leaf.before(self._machine)

    def _stacked(self, content: list) -> Tensor:
        items = content[self._count:]
        given = [item.tensor if isinstance(item, grown.Rows) else item for item in items]
        return self._machine.on_tensors(lambda: grown.stacked(items, self._dtype, self._shape), given)

    def variables(self, value: list) -> list[Tensor]:
        if grown.common_start(self._before, value) < self._count:
            raise Decline("a loop on a tensor changes a list in other ways than by appending")
        if grown.rows_of(self._machine, value[self._count:], []) != (self._dtype, self._shape):
            raise Decline("the rounds of a loop on a tensor append tensors of different kinds to a list")
        assert self._leaf is not None, "before() comes first"
        return self._leaf.variables(self._machine, self._stacked(value))

    def taken(self, given: Iterator[Tensor]) -> list:
        assert self._leaf is not None, "before() comes first"
        rows = self._leaf.taken(self._machine, given)
        return grown.taken(self._machine.world, self._key, self._before[:self._count], rows)


class _Rounds:
    """All rounds of one loop, from the header on."""

    def __init__(
        self, machine: Interpreter, frame: Frame, places: Places, header: int, exits: frozenset, names: list[str]
    ) -> None:
        self.machine, self.frame, self.places = machine, frame, places
        self._header, self._exits, self._names = header, exits, names
        self._heap = Heap(machine.world)
        self._raises = False
        lost = places.missing.get(header, frozenset())
        self._locals: dict[str, Any] = {n: _Tree(machine, frame.locals[n]) for n in names
                        if n not in lost and is_set(frame.locals.get(n, ABSENT))}
        self._lost = {*lost, *(n for n in names if n not in self._locals)}
        self._objects: dict[int, _Tree | _GrownList] = {}
        self._modes = dict(places.modes)
        self._found: dict[int, tuple[list, frozenset]] = {}  # where rounds have ended

    def run(self) -> Places:
        """Puts the state after the loop into the frame, and returns where it continues."""
        machine, ops = self.machine, _C.ops
        which = self.places.which
        for _ in range(_MOST_TRIES):
            again = ops.equal(which, machine.as_tensor(self._header))
            stopped = machine.any_of(machine.has_raised())
            if stopped is not None:
                again = ops.logical_and(again, ops.logical_not(stopped))
            first = [again, which, *([machine.as_tensor(False)] if self._raises else []),
                     *(t for tree in self._trees() for t in tree.before())]
            try:
                with restored_modes():
                    _C.set_grad_enabled(True)  # tensors that require a gradient pass through, whatever the mode in the loop
                    made = _C.while_loop(lambda variables: [variables[0]], self._round, first)
                break
            except _Again:
                self._heap.restore(machine.world)
        else:
            raise Decline("what a loop on a tensor carries does not settle")
        self._heap.restore(machine.world)
        if self._raises:
            machine.raised.append(made[2])
        self._take(self.frame, iter(made[2 + self._raises:]))
        return self._exit_places(made[1])

    def _trees(self) -> list[_Tree | _GrownList]:
        return [*self._locals.values(), *self._objects.values()]

    def _take(self, frame: Frame, given: Iterator[Tensor]) -> None:
        for name in self._lost:
            frame.locals[name] = UNKNOWN
        for name, tree in self._locals.items():
            frame.locals[name] = tree.taken(given)
        for key, tree in self._objects.items():
            fill(self._heap.objects[key], tree.taken(given))

    def _round(self, variables: list) -> list:
        machine, header = self.machine, self._header
        world = machine.world
        self._heap.restore(world)
        other = self.frame.copy()
        other.locals = {name: clone(item, world) for name, item in other.locals.items()}
        other.index, other.stack = header, [clone(item, world) for item in self.places.stacks[header]]
        kept = {name: item for name, item in other.locals.items() if name not in self._names}
        self._take(other, iter(variables[2 + self._raises:]))
        set_modes(self.places.modes[header])
        way = machine.run_region(other, self._exits | {header}, self._heap, object(), lambda: machine.step(other))
        self._check(way, kept)
        which = machine.as_tensor(way.places.only) if way.places.which is None else way.places.which
        again = _C.ops.equal(which, machine.as_tensor(header))
        raised = []
        if self._raises:
            flags = [variables[2], *([] if way.raised is None else [way.raised])]
            raised = [machine.any_of(flags)]
            again = _C.ops.logical_and(again, _C.ops.logical_not(raised[0]))
        carried = self._carried(way)
        _C.set_grad_enabled(True)
        return [again, which, *raised, *carried]

    def _check(self, way: Way, kept: dict) -> None:
        """That nothing has changed but what is carried."""
        if not self._heap.same_writes(way.heap):
            raise Decline("a loop on a tensor changes something outside")
        if not set(way.places.stacks) <= self._exits | {self._header}:
            raise Decline("a loop on a tensor is left in several ways")
        if way.raised is not None and not self._raises:
            self._raises = True
            raise _Again
        for name, item in kept.items():
            if not _same_item(way.frame.locals.get(name, ABSENT), self.frame.locals.get(name, ABSENT)):
                raise Decline(f"a loop on a tensor advances {name}")
        if grown.forget(self._heap.unknown, way.heap.unknown):
            raise _Again
        self._add_objects(self._heap.changed(way.heap))
        for place, stack in way.places.stacks.items():
            known, missing = self.places.stacks.get(place, stack), way.places.missing.get(place, frozenset())
            if len(known) != len(stack) or not all(map(_same_item, known, stack)):
                raise Decline("the rounds of a loop on a tensor leave different values")
            if self._modes.setdefault(place, way.places.modes[place]) != way.places.modes[place]:
                raise Decline("the rounds of a loop on a tensor leave different gradient modes")
            missing |= {n for n in self._names if not is_set(way.frame.locals.get(n, ABSENT))}
            self._found[place] = stack, missing | self._found.get(place, ([], frozenset()))[1]

    def _add_objects(self, changed: list[int]) -> None:
        unknown = self._heap.unknown
        new = [key for key in changed
               if key not in self._objects and (key not in unknown or isinstance(unknown[key], grown.Grown))]
        for key in new:
            value, content = self._heap.objects[key], self._heap.contents[key]
            if isinstance(value, set) or not isinstance(content, (list, dict, tuple)):
                raise Decline(f"a loop on a tensor changes a {type(value).__name__}")
            self._objects[key] = _Tree(self.machine, content, inside=True)
        if new:
            raise _Again

    def _carried(self, way: Way) -> list[Tensor]:
        made = []
        for name, tree in list(self._locals.items()):
            try:
                if name in self._found.get(self._header, ((), ()))[1]:
                    raise Decline(f"{name} is not set in every round")
                made += tree.variables(way.frame.locals.get(name, ABSENT))
            except Decline:
                del self._locals[name]  # it is not known from here on: who reads it declines
                self._lost.add(name)
                raise _Again from None
        for key, tree in list(self._objects.items()):
            before, after = self._heap.contents[key], way.heap.contents[key]
            if isinstance(tree, _Tree) and type(self._heap.objects[key]) is list and (
                    len(before) != len(after) or any(isinstance(item, grown.Rows) for item in [*before, *after])):
                self._objects[key] = _GrownList(self.machine, key, before, after)
                raise _Again
            made += tree.variables(after)
        return made

    def _exit_places(self, which: Tensor) -> Places:
        stacks, missing = {}, {}
        for place in sorted(self._exits):
            if place in self.places.stacks or place in self._found:
                stack, lost = self._found.get(place, ([], frozenset()))
                stacks[place] = self.places.stacks.get(place, stack)
                missing[place] = lost | self.places.missing.get(place, frozenset()) | self._lost
        return Places(stacks, missing, which if len(stacks) > 1 else None, self._modes)


def _same_item(a: Any, b: Any) -> bool:
    return a is b or _C.Guards.same(a, b) or same_place(a, b)
