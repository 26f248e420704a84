"""How the ways of a branch begin and end, and the state in which they meet again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import flow, known
from oar.jit._interpret.frame import Frame, Generator
from oar.jit._interpret.heap import Heap, fill, same_place
from oar.jit._interpret.world import ABSENT, Decline

__all__ = ["SEVERAL", "UNKNOWN", "Merge", "Places", "Way", "is_set"]

SEVERAL = -2  # a region that ends in one of several places, as a tensor says
UNKNOWN: Any = type("_Unknown", (), {"__repr__": lambda self: "a variable that only one branch sets"})()


class Places(NamedTuple):
    """Where a region begins or ends: one place, or several of which a tensor says one.

    Variables that are not set on every way to a place are missing there.
    """

    stacks: dict[int, list]
    missing: dict[int, frozenset[str]] = {}
    which: Tensor | None = None

    @property
    def only(self) -> int:
        return next(iter(self.stacks)) if len(self.stacks) == 1 else SEVERAL

    def select(self, wanted: list[int]) -> Places:
        return Places({p: self.stacks[p] for p in wanted}, {p: self.missing.get(p, frozenset()) for p in wanted},
                      self.which if len(wanted) > 1 else None)


class Way(NamedTuple):
    """How one way ended: where, the frame then, the returned value, the contents of objects, whether it has raised."""

    places: Places
    frame: Frame
    value: Any
    heap: Heap
    raised: Tensor | None


class _Leaf(NamedTuple):
    """One result of the branch: where a way has it, and what stands for it on a way that does not."""

    path: tuple
    kind: type | None
    dtype: Any
    shape: list


class _Made(NamedTuple):
    """What the program's branch gives, and what was built of it."""

    tensors: list[Tensor]
    built: dict[tuple[int, int], Any]


Template = Callable[[_Made], Any]


class Merge:
    """Which tensors two ways leave in the places where they differ, and the state that joins them."""

    def __init__(self, machine: Any, heap: Heap, pred: Tensor, yes: Way, no: Way, older: list) -> None:
        if not heap.same_writes(yes.heap) or not heap.same_writes(no.heap):
            raise Decline("a branch on a tensor changes something outside")
        self.machine, self._pred, self._heap, self._older = machine, pred, heap, older
        self._cannot_join: dict[int, str] = {}
        self._leaves: list[_Leaf] = []
        self._pairs: dict[int, int] = {}
        self._ends = {True: set(yes.places.stacks), False: set(no.places.stacks)}
        self._several = len(self._ends[True] | self._ends[False]) > 1
        self._stacks = self._joined_stacks(yes, no)
        self._missing = self._joined_missing(yes, no)
        ended = flow.END in self._stacks
        if ended and self._several:
            raise Decline("the branches of a tensor go on in different places")
        names = [] if ended else [*yes.frame.locals, *(n for n in no.frame.locals if n not in yes.frame.locals)]
        self._locals = {n: self._local(yes, no, n) for n in names}
        self._value = self._joined(yes.value, no.value, ("value",)) if ended else None
        touched = {*heap.changed(yes.heap), *heap.changed(no.heap)}
        self._contents = {key: self._content(heap.objects[key], yes, no, key) for key in touched}
        self._unknown = {**yes.heap.unknown, **no.heap.unknown, **self._cannot_join}
        self._raises = yes.raised is not None or no.raised is not None

    # the two ways side by side ---------------------------------------------------------------------------

    def _joined_stacks(self, yes: Way, no: Way) -> dict[int, list[Template]]:
        """By place: the stack there. Where there are several places, their stacks hold nothing that a branch made."""
        made = {}
        for place in sorted(self._ends[True] | self._ends[False]):
            a, b = yes.places.stacks.get(place), no.places.stacks.get(place)
            if place == flow.END:
                made[place] = []
                continue
            a, b = b if a is None else a, a if b is None else b
            if len(a) != len(b):
                raise Decline("the branches of a tensor leave different values")
            if self._several:
                made[place] = [self._constant_item(*pair) for pair in zip(a, b)]
            else:
                made[place] = [self._joined(x, y, ("stack", i)) for i, (x, y) in enumerate(zip(a, b))]
        return made

    def _constant_item(self, a: Any, b: Any) -> Template:
        if not (a is b or _C.Guards.same(a, b) or same_place(a, b)) or isinstance(a, Tensor) and not self._is_older(a):
            raise Decline("the branches of a tensor leave different values")
        return lambda made: a

    def _is_older(self, tensor: Tensor) -> bool:
        return any(tensor is item for item in self._older)

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
        if self._several and is_set(a) != is_set(b):
            return self._one_sided(a if is_set(a) else b, name)
        if self._several and is_set(a):
            return self._tried(lambda: self._joined(a, b, ("local", name)), name)
        return self._joined(a, b, ("local", name))

    def _one_sided(self, value: Any, name: str) -> Template:
        """A variable that only one way sets: on the other one, which goes elsewhere, anything stands for it."""
        return self._tried(lambda: self._joined(value, ABSENT, ("local", name), one_sided=True), name)

    def _tried(self, join: Callable[[], Template], name: str) -> Template:
        """Where a variable cannot be joined, it is not known in any of the places."""
        count = len(self._leaves)
        try:
            return join()
        except Decline:
            del self._leaves[count:]
            self._missing = {place: names | {name} for place, names in self._missing.items()}
            return lambda made: UNKNOWN

    def _content(self, value: Any, yes: Way, no: Way, key: int) -> Template | None:
        a, b = yes.heap.contents[key], no.heap.contents[key]
        count = len(self._leaves)
        try:
            if type(a) is not type(b) or not isinstance(a, (list, dict, tuple)) or isinstance(value, set) and a != b:
                raise Decline("the branches of a tensor change an object in different ways")
            return self._joined(a, b, ("heap", key), inside=True)
        except Decline as decline:
            del self._leaves[count:]
            self._cannot_join[key] = str(decline)
            return None

    # values ----------------------------------------------------------------------------------------------

    def _joined(self, a: Any, b: Any, path: tuple, inside: bool = False, one_sided: bool = False) -> Template:
        """A function from the tensors of the run to the value."""
        if not one_sided:
            if a is b or _C.Guards.same(a, b):
                return lambda made: a
            if not is_set(a) or not is_set(b):
                return lambda made: UNKNOWN
        elif not isinstance(a, (Tensor, tuple)) and (not self.machine.world.is_fresh(a) or id(a) in self._heap.objects):
            return lambda made: a
        machine = self.machine
        if any(machine.kind_of(v) is not None or isinstance(v, Tensor) for v in (a, b)):
            return self._tensor(a, a if one_sided else b, path, one_sided)
        if isinstance(a, Generator) or type(a) in known.ITERATORS:
            return (lambda made: a) if same_place(a, b) else (lambda made: UNKNOWN)
        if not one_sided and type(a) is not type(b) or not (inside or id(a) not in self._heap.objects or isinstance(a, tuple)):
            raise Decline("the branches of a tensor give different objects")
        return self._container(a, a if one_sided else b, path, inside, one_sided)

    def _tensor(self, a: Any, b: Any, path: tuple, one_sided: bool) -> Template:
        machine, kind = self.machine, self.machine.kind_of(a)
        if kind is not machine.kind_of(b) or isinstance(a, Tensor) and a.dtype != machine.as_tensor(b).dtype:
            raise Decline("the branches of a tensor give values of different types")
        like = machine.as_tensor(a)
        place = self._add(_Leaf(path, kind, like.dtype, list(like.shape)))
        if one_sided and any(type(d) is _C.Dim and d.is_told for d in like.shape):
            raise Decline("only one branch sets a tensor whose size depends on values")
        if kind is not None:
            return lambda made: machine.tagged(made.tensors[place], kind)
        asks = self._asking(a, b, path, one_sided)
        if machine.origin_of(a) is machine.origin_of(b) is None:
            return lambda made: machine.asking(made.tensors[place], asks(made))
        origin = self._add(_Leaf(("origin", *path), int, "int64", []))
        return lambda made: machine.with_origin(machine.asking(made.tensors[place], asks(made)), made.tensors[origin])

    def _asking(self, a: Tensor, b: Tensor, path: tuple, one_sided: bool) -> Template:
        """Whether the joined tensor asks for its gradient: yes, no, or a tensor that says it."""
        machine, pred = self.machine, self._pred
        first, second = machine.asks(a), machine.asks(b)
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            place = self._add(_Leaf(("asks", *path), bool, "bool", []))
            return lambda made: made.tensors[place]
        if first == second or one_sided:
            return lambda made: first
        return lambda made: pred if first else _C.ops.logical_not(pred)

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
            return lambda made: build([part(made) for part in parts])
        if self._pairs.setdefault(id(a), id(b)) != id(b):
            raise Decline("the branches of a tensor give different objects")
        new = self.machine.world.new

        def once(made: _Made) -> Any:
            key = id(a), id(b)  # two variables may hold one list
            if key not in made.built:
                made.built[key] = new(build([part(made) for part in parts]))
            return made.built[key]

        return once

    # what the program's branches give ----------------------------------------------------------------------

    def leaves(self, way: Any, which: bool) -> list[Tensor]:
        """The tensors that differ, of one way."""
        if not isinstance(way, Way) or set(way.places.stacks) != self._ends[which]:
            raise Decline("a branch on a tensor goes another way when it is looked at again")
        found = [self._of_way(way, leaf) for leaf in self._leaves]
        as_tensor = self.machine.as_tensor
        if self._several:
            found.append(as_tensor(way.places.only) if way.places.which is None else way.places.which)
        if self._raises:
            found.append(as_tensor(False) if way.raised is None else way.raised)
        return found

    def _of_way(self, way: Way, leaf: _Leaf) -> Tensor:
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
        if kind == "value":
            value = way.value
        elif kind == "heap":
            value = way.heap.contents[rest.pop(0)]
        elif kind == "stack":
            value = way.frame.stack[rest.pop(0)]
        else:
            value = way.frame.locals.get(rest.pop(0), ABSENT)
        for key in rest:
            if not is_set(value):
                return ABSENT
            value = value[key]
        return value

    # the joined state --------------------------------------------------------------------------------------

    def apply(self, frame: Frame, way: Way, tensors: list[Tensor]) -> Any:
        """Puts the joined state into the frame; returns the places, and the value where both ways return."""
        made = _Made(tensors, {})
        machine = self.machine
        if self._raises:
            machine.raised.append(tensors[-1])
        which = tensors[-2 if self._raises else -1] if self._several else None
        for key, part in self._contents.items():
            if part is not None:
                fill(machine.world.fresh_objects()[key], part(made))
        machine.world.unknown.update(self._unknown)
        if flow.END in self._stacks:
            return Places({flow.END: []}), self._value(made)
        values = {n: part(made) for n, part in self._locals.items()}
        frame.locals.clear()
        frame.locals.update({n: v for n, v in values.items() if v is not ABSENT})
        frame.caught = way.frame.caught
        stacks = {place: [part(made) for part in stack] for place, stack in self._stacks.items()}
        return Places(stacks, self._missing, which), None


def is_set(value: Any) -> bool:
    return value is not ABSENT and value is not UNKNOWN
