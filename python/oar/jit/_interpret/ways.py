"""How the sides of a branch begin and end, and the state after they join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import flow, grown, known
from oar.jit._interpret.frame import Frame, Generator
from oar.jit._interpret.heap import Heap, fill, same_place
from oar.jit._interpret.world import ABSENT, Decline

__all__ = ["RETURNED", "SEVERAL", "UNKNOWN", "Joint", "Merge", "Places", "StalePlan", "Way", "is_set"]

SEVERAL = -2  # a region that ends at one of several places, selected by a tensor
RETURNED = "<returned>"  # the name under which a frame has what it returns
UNKNOWN: Any = type("_Unknown", (), {"__repr__": lambda self: "a variable that only one branch sets"})()


class Places(NamedTuple):
    """Where a region begins or ends: one place, or several of which a tensor selects one.

    Variables that are not set on every way to a place are missing there.
    """

    stacks: dict[int, list]
    missing: dict[int, frozenset[str]] = {}
    which: Tensor | None = None
    modes: dict[int, tuple] = {}  # gradient mode and mixed precision there

    @property
    def only(self) -> int:
        return next(iter(self.stacks)) if len(self.stacks) == 1 else SEVERAL

    def leads_on(self, stops: frozenset[int]) -> bool:
        """Whether there are several places and one of them is not an end of the outer region."""
        return self.only == SEVERAL and not self.stacks.keys() - {flow.END} <= stops

    def select(self, wanted: list[int]) -> Places:
        return Places({p: self.stacks[p] for p in wanted}, {p: self.missing.get(p, frozenset()) for p in wanted},
                      self.which if len(wanted) > 1 else None, self.modes)


class Way(NamedTuple):
    """How one way ended: where, the frame then, the contents of objects, whether it has raised."""

    places: Places
    frame: Frame
    heap: Heap
    raised: Tensor | None
    asked: frozenset[int]  # outside tensors that require a gradient and were read


class _Leaf(NamedTuple):
    """One result of the branch: where a side has it, and its replacement on a side that does not."""

    path: tuple
    dtype: Any
    shape: list


class Joint(NamedTuple):
    """A branch of the program: its condition, how its ways ended, and the tensors that it gives."""

    pred: Tensor
    ways: tuple[Way, Way]
    older: set[int]  # ids of the tensors that were there before it
    tensors: list[Tensor]
    built: dict[tuple[int, ...], Any]


class StalePlan(BaseException):
    """A branch that is interpreted again changes other objects than the first time."""


Template = Callable[[Joint], Any]


class Merge:
    """Which tensors two ways leave in the places where they differ, and the state that joins them.

    It holds paths, not values: a branch within another is interpreted several times, and joined in the same way each time.
    """

    def __init__(self, machine: Any, heap: Heap, yes: Way, no: Way) -> None:
        if not heap.same_writes(yes.heap) or not heap.same_writes(no.heap):
            raise Decline("a branch on a tensor changes something outside")
        self.machine, self._shared = machine, set(heap.objects)
        self._cannot_join: dict[int, str] = {}
        self._leaves: list[_Leaf] = []
        self._pairs: dict[int, int] = {}
        self._tensors: dict[tuple, Template] = {}
        self._ends = {True: set(yes.places.stacks), False: set(no.places.stacks)}
        self._several = len(self._ends[True] | self._ends[False]) > 1
        self._stacks = self._joined_stacks(yes, no)
        self._missing = self._joined_missing(yes, no)
        self._modes = {**yes.places.modes, **no.places.modes}
        if any(self._modes[place] != mode for place, mode in yes.places.modes.items()):
            raise Decline("the branches of a tensor leave different gradient modes")
        names = [*yes.frame.locals, *(n for n in no.frame.locals if n not in yes.frame.locals)]
        if self._ends[True] == self._ends[False] == {flow.END}:
            names = [RETURNED]  # nothing else is of use any more
        self._locals = {n: self._local(yes, no, n) for n in names}
        touched = {*heap.changed(yes.heap), *heap.changed(no.heap)}
        self._contents = {key: self._content(heap.objects[key], yes, no, key) for key in touched}
        self._raises = yes.raised is not None or no.raised is not None

    # the two ways side by side ---------------------------------------------------------------------------

    def _joined_stacks(self, yes: Way, no: Way) -> dict[int, list[Template]]:
        """By place: the stack there. With several places, their stacks hold nothing that a branch created."""
        made = {}
        for place in sorted(self._ends[True] | self._ends[False]):
            stacks = [way.places.stacks[place] for way in (yes, no) if place in way.places.stacks]
            a, b = stacks[0], stacks[-1]
            if len(a) != len(b):
                raise Decline("the branches of a tensor leave different values")
            if self._several:
                made[place] = [self._constant_item(x, y, place, i) for i, (x, y) in enumerate(zip(a, b))]
            else:
                made[place] = [self._joined(x, y, ("stack", place, i)) for i, (x, y) in enumerate(zip(a, b))]
        return made

    def _constant_item(self, a: Any, b: Any, place: int, i: int) -> Template:
        if not (a is b or _C.Guards.same(a, b) or same_place(a, b)):
            raise Decline("the branches of a tensor leave different values")

        def found(joint: Joint) -> Any:
            item = self._find_any(joint, ("stack", place, i))
            if isinstance(item, Tensor) and id(item) not in joint.older:
                raise Decline("the branches of a tensor leave different values")
            return item

        return found

    def _joined_missing(self, yes: Way, no: Way) -> dict[int, frozenset[str]]:
        names = {*yes.frame.locals, *no.frame.locals}
        made = {}
        for place in self._stacks:
            made[place] = frozenset(
                name for way in (yes, no) if place in way.places.stacks for name in names
                if not is_set(way.frame.locals.get(name, ABSENT)) or name in way.places.missing.get(place, ()))
        return made

    def _local(self, yes: Way, no: Way, name: str) -> Template:
        a, b = (way.frame.locals.get(name, ABSENT) for way in (yes, no))
        path = "local", name
        if not self._several:
            return self._joined(a, b, path)
        if is_set(a) == is_set(b):
            return self._tried(lambda: self._joined(a, b, path), name)
        # On the other side, which continues elsewhere, any value will do.
        return self._tried(lambda: self._joined(a if is_set(a) else b, ABSENT, path, one_sided=True), name)

    def _tried(self, join: Callable[[], Template], name: str) -> Template:
        """Where a variable cannot be joined, it is not known in any of the places."""
        count = len(self._leaves)
        try:
            return join()
        except Decline:
            if name == RETURNED:
                raise
            del self._leaves[count:]
            self._missing = {place: names | {name} for place, names in self._missing.items()}
            return lambda joint: UNKNOWN

    def _content(self, value: Any, yes: Way, no: Way, key: int) -> Template | None:
        a, b = yes.heap.contents[key], no.heap.contents[key]
        count = len(self._leaves)
        try:
            for reason in (yes.heap.unknown.get(key), no.heap.unknown.get(key)):
                if reason is not None and not isinstance(reason, grown.Grown):
                    raise Decline(reason)
            if type(value) is list and (len(a) != len(b) or any(isinstance(item, grown.Rows) for item in [*a, *b])):
                return self._grown(a, b, key)
            if type(a) is not type(b) or not isinstance(a, (list, dict, tuple)) or isinstance(value, set) and a != b:
                raise Decline("the branches of a tensor change an object in different ways")
            return self._joined(a, b, ("heap", key), inside=True)
        except Decline as decline:
            del self._leaves[count:]
            self._cannot_join[key] = str(decline)
            return None

    def _grown(self, a: list, b: list, key: int) -> Template:
        """A list to which the ways append different numbers of tensors."""
        machine, count = self.machine, grown.common_start(a, b)
        dtype, shape = grown.rows_of(machine, a[count:], b[count:])
        place = self._add(_Leaf(("rows", key, count), dtype, shape))
        flag = self._add(_Leaf(("rows ask", key, count), "bool", []))
        asks = [machine.asks(getattr(item, "tensor", item)) for item in [*a[count:], *b[count:]]]

        def found(joint: Joint) -> list:
            asked = False if not any(asked is not False for asked in asks) else joint.tensors[flag]
            start = [self._find(joint.ways[0], ("heap", key, i)) for i in range(count)]
            return grown.taken(machine.world, key, start, machine.asking(joint.tensors[place], asked))

        return found

    # values ----------------------------------------------------------------------------------------------

    def _joined(self, a: Any, b: Any, path: tuple, inside: bool = False, one_sided: bool = False) -> Template:
        """A function from the branch of the program to the value."""
        machine = self.machine
        if not one_sided:
            if a is b or _C.Guards.same(a, b):
                return lambda joint: self._find_any(joint, path)
            if not is_set(a) or not is_set(b):
                return lambda joint: UNKNOWN
        elif not isinstance(a, (Tensor, tuple)) and (not machine.world.is_fresh(a) or id(a) in self._shared):
            return lambda joint: self._find_any(joint, path)
        if any(machine.kind_of(v) is not None or isinstance(v, Tensor) for v in (a, b)):
            return self._tensor(a, a if one_sided else b, path, one_sided)
        if isinstance(a, Generator) or type(a) in known.ITERATORS:
            return (lambda joint: self._find_any(joint, path)) if same_place(a, b) else (lambda joint: UNKNOWN)
        if not one_sided and type(a) is not type(b) or not (inside or id(a) not in self._shared or isinstance(a, tuple)):
            raise Decline("the branches of a tensor give different objects")
        return self._container(a, a if one_sided else b, path, inside, one_sided)

    def _tensor(self, a: Any, b: Any, path: tuple, one_sided: bool) -> Template:
        machine, kind = self.machine, self.machine.kind_of(a)
        if kind is not machine.kind_of(b) or isinstance(a, Tensor) and a.dtype != machine.as_tensor(b).dtype:
            raise Decline("the branches of a tensor give values of different types")
        like = machine.as_tensor(a)
        if one_sided and any(type(d) is _C.Dim and d.is_told for d in like.shape):
            raise Decline("only one branch sets a tensor whose size depends on values")
        place = self._add(_Leaf(path, like.dtype, list(like.shape)))
        if kind is not None:
            return lambda joint: machine.tagged(joint.tensors[place], kind)
        key = id(a), id(b), one_sided
        if key in self._tensors:  # one tensor in two places on both ways is one after them too
            self._leaves.pop()
            return self._tensors[key]
        asks = self._asking(a, b, path, one_sided)
        has_origin = machine.origin_of(a) is not None or machine.origin_of(b) is not None
        origin = self._add(_Leaf(("origin", *path), "int64", [])) if has_origin else None

        def found(joint: Joint) -> Tensor:
            if key not in joint.built:
                tensor = machine.asking(joint.tensors[place], asks(joint))
                machine.joined(tensor, [self._find(way, path) for way in joint.ways], joint.older)
                joint.built[key] = tensor if origin is None else machine.with_origin(tensor, joint.tensors[origin])
            return joint.built[key]

        self._tensors[key] = found
        return found

    def _asking(self, a: Tensor, b: Tensor, path: tuple, one_sided: bool) -> Template:
        """Whether the joined tensor requires a gradient: yes, no, or a tensor that holds it."""
        first, second = self.machine.asks(a), self.machine.asks(b)
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            place = self._add(_Leaf(("asks", *path), "bool", []))
            return lambda joint: joint.tensors[place]
        if first == second or one_sided:
            return lambda joint: first
        return lambda joint: joint.pred if first else _C.ops.logical_not(joint.pred)

    def _add(self, leaf: _Leaf) -> int:
        self._leaves.append(leaf)
        return len(self._leaves) - 1

    def _container(self, a: Any, b: Any, path: tuple, inside: bool, one_sided: bool) -> Template:
        kind = type(a)
        if kind in (list, tuple) and len(a) == len(b):
            keys: Any = range(len(a))
        elif kind is dict and list(a) == list(b):
            keys = list(a)
        else:
            raise Decline("the branches of a tensor give different objects")
        parts = [self._joined(a[k], ABSENT if one_sided else b[k], (*path, k), one_sided=one_sided) for k in keys]
        build = (lambda items: dict(zip(keys, items))) if kind is dict else kind
        if kind is tuple or inside:
            return lambda joint: build([part(joint) for part in parts])
        if self._pairs.setdefault(id(a), id(b)) != id(b):
            raise Decline("the branches of a tensor give different objects")
        new = self.machine.world.new

        def once(joint: Joint) -> Any:
            key = id(a), id(b)  # two variables may hold one list
            if key not in joint.built:
                joint.built[key] = new(build([part(joint) for part in parts]))
            return joint.built[key]

        return once

    # what the program's branches give ----------------------------------------------------------------------

    def knows(self, heap: Heap) -> bool:
        """Whether the objects that it joins are there."""
        return self._contents.keys() <= heap.objects.keys()

    def leaves(self, way: Any, which: bool, heap: Heap) -> list[Tensor]:
        """The tensors that differ, of one way."""
        if not isinstance(way, Way) or set(way.places.stacks) != self._ends[which]:
            raise Decline("a branch on a tensor takes another path when it is interpreted again")
        if not self._contents.keys() >= set(heap.changed(way.heap)):
            raise StalePlan
        found = [self._of_way(way, leaf) for leaf in self._leaves]
        as_tensor = self.machine.as_tensor
        if self._several:
            found.append(as_tensor(way.places.only) if way.places.which is None else way.places.which)
        if self._raises:
            found.append(as_tensor(False) if way.raised is None else way.raised)
        return found

    def _of_way(self, way: Way, leaf: _Leaf) -> Tensor:
        if leaf.path[0] in ("rows", "rows ask"):
            kind, key, count = leaf.path
            items = way.heap.contents[key][count:]
            return grown.stacked(items, leaf.dtype, leaf.shape) if kind == "rows" else grown.asked(self.machine, items)
        found = self._find(way, leaf.path)
        if not is_set(found):
            return _C.ops.zeros(leaf.shape, leaf.dtype)
        return self.machine.as_tensor(found)

    def _find(self, way: Way, path: tuple) -> Any:
        kind, *rest = path
        if kind in ("origin", "asks"):
            found = self._find(way, tuple(rest))
            if not is_set(found):
                return 0 if kind == "origin" else False
            made = self.machine.origin_of(found) if kind == "origin" else self.machine.asks(found)
            return 0 if made is None else made
        if kind == "heap":
            value = way.heap.contents[rest.pop(0)]
        elif kind == "stack":
            value = way.places.stacks.get(rest.pop(0), ABSENT)
        else:
            value = way.frame.locals.get(rest.pop(0), ABSENT)
        for key in rest:
            if not is_set(value):
                return ABSENT
            value = value[key]
        return value

    def _find_any(self, joint: Joint, path: tuple) -> Any:
        """What the ways have in common, or only one of them has."""
        first, second = (self._find(way, path) for way in joint.ways)
        return first if is_set(first) else second

    # the joined state --------------------------------------------------------------------------------------

    def apply(self, frame: Frame, joint: Joint) -> Places:
        """Puts the joined state into the frame, and returns where it continues."""
        machine, tensors = self.machine, joint.tensors
        which = tensors[-2 if self._raises else -1] if self._several else None
        for reasons in (joint.ways[0].heap.unknown, joint.ways[1].heap.unknown, self._cannot_join):
            grown.forget(machine.world.unknown, reasons)
        for key, part in self._contents.items():
            if part is not None:
                fill(machine.world.fresh_objects()[key], part(joint))
        values = {n: part(joint) for n, part in self._locals.items()}
        stacks = {place: [part(joint) for part in stack] for place, stack in self._stacks.items()}
        if self._raises:
            machine.raised.append(tensors[-1])
        frame.locals.clear()
        frame.locals.update({n: v for n, v in values.items() if v is not ABSENT})
        frame.caught = joint.ways[0].frame.caught
        return Places(stacks, self._missing, which, self._modes)


def is_set(value: Any) -> bool:
    return value is not ABSENT and value is not UNKNOWN
