"""The results and effects of a call: recorded once, rebuilt at every run."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import known
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.world import ABSENT, IMMUTABLE, Decline, World, is_array

__all__ = ["Results"]

Maker = Callable[[list, list, dict], Any]  # of a run's tensors, the caller's tensors, and what was already built

_UNMADE = (types.FunctionType, types.MethodType, Generator, types.CellType, *known.ITERATORS, BaseException, super,
           types.TracebackType)


class Results:
    """Collects the tensors that the program has to give, and makers of everything that holds them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.outputs: list[Tensor] = []
        self._places: dict[int, int] = {}
        self._inputs = {key: i for i, key in enumerate(world.inputs)}
        self._makers: dict[int, Maker] = {}
        self._kept: list[Any] = []  # so that no two values have one id

    def finish(self, value: Any) -> Maker:
        """A maker of the function's result."""
        if self._is_plain(value):
            return _results_at(self._place(value))
        if type(value) is tuple and value and all(map(self._is_plain, value)):
            return _results_at(tuple([self._place(v) for v in value]))
        return self.maker(value)

    def effects(self) -> list[Callable[[list, list, dict], None]]:
        """What will be changed outside after a run."""
        pending, steps = self._world.pending, []
        for mapping, written in pending.dicts.values():
            steps.append(self._dict_step(mapping, written))
        for container, calls in pending.additions.values():
            steps.append(self._addition_step(container, calls))
        for container, copy in pending.copies.values():
            steps.append(self._copy_step(container, copy))
        for cell, value in pending.cells.values():
            steps.append(self._cell_step(cell, value))
        for owner, descriptor, value in pending.slots.values():
            steps.append(self._slot_step(owner, descriptor, value))
        for function, args, kwargs in pending.calls:
            steps.append(self._call_step(function, args, kwargs))
        self._check_identities()
        return steps

    def _check_identities(self) -> None:
        """Whether two results are one tensor may depend on a branch and is then unknown before a run."""
        met: set[int] = set()
        for tensor in self.outputs:
            mine = {id(tensor), *map(id, self._world.joined.get(id(tensor), (None, []))[1])}
            if mine & met:
                raise Decline("it returns two tensors that are the same in one side of a branch")
            met |= mine

    # values ----------------------------------------------------------------------------------------------

    def _is_plain(self, value: Any) -> bool:
        """A result tensor of the program about which the run determines nothing else."""
        world, key = self._world, id(value)
        if not isinstance(value, Tensor) or key in self._inputs or world.is_outside(value):
            return False
        is_number = key in world.numbers and not world.keeps_tensors
        return key not in world.origins and not is_number and key not in world.asking

    def _place(self, tensor: Tensor) -> int:
        if id(tensor) not in self._places:
            self._places[id(tensor)] = len(self.outputs)
            self.outputs.append(tensor)
        return self._places[id(tensor)]

    def maker(self, value: Any) -> Maker:
        """A function that builds the value from a run's tensors."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        kind = type(value)
        if kind.__name__ == "_Unknown":
            raise Decline("it returns a variable that only one branch sets")
        if kind is known.UniqueName:
            raise Decline("it returns a layer that it created, whose name differs at every call")
        if kind is _C.Dim:
            raise Decline(f"a size that is open ({value}) leaves it")
        if kind in IMMUTABLE or isinstance(value, type):
            return _constant(value)
        if kind in (tuple, frozenset):
            return self._sequence(value, kind)
        if isinstance(value, tuple) and hasattr(kind, "_make"):
            return self._sequence(value, kind._make)
        if self._world.is_argument(value):
            raise Decline(f"it returns the {kind.__name__} that was passed to it")
        if not self._world.is_fresh(value):
            if isinstance(value, types.MethodType) and self._world.is_fresh(value.__self__):
                raise Decline("it returns a method of an object that it created")
            return _constant(value)
        self._world.check_content(value)
        if id(value) not in self._makers:
            self._makers[id(value)] = lambda made, given, memo: memo[id(value)]  # a cycle
            self._makers[id(value)] = self._shared(id(value), self._mutable(value))
        return self._makers[id(value)]

    def _tensor(self, value: Tensor) -> Maker:
        if id(value) in self._inputs:
            place = self._inputs[id(value)]
            return lambda made, given, memo: given[place]
        if self._world.is_outside(value):
            return _constant(value)
        if id(value) in self._world.origins:
            return self._told(value)
        return self._made(value)

    def _made(self, value: Tensor) -> Maker:
        place, kind = self._place(value), self._world.numbers.get(id(value))
        if kind is not None and not self._world.keeps_tensors:
            return lambda made, given, memo: kind(made[place].item())
        if id(value) in self._world.asking:
            asks = self._place(self._world.asking[id(value)][1])
            return lambda made, given, memo: made[place] if made[asks].item() else _detached(made, place, memo)
        return lambda made, given, memo: made[place]

    def _told(self, value: Tensor) -> Maker:
        """One of the tensors from outside, or a new one; the run determines which."""
        which, new = self._place(self._world.origins[id(value)][1]), self._made(value)
        others = [self._tensor(t) for t in self._world.numbered]

        def make(made: list, given: list, memo: dict) -> Any:
            number = int(made[which].item())
            return (others[number - 1] if number else new)(made, given, memo)

        return make

    def _sequence(self, value: Any, build: Callable) -> Maker:
        parts = [self.maker(item) for item in value]
        if all(getattr(part, "constant", False) for part in parts):
            return _constant(value)
        key = id(value)

        def make(made: list, given: list, memo: dict) -> Any:
            if key not in memo:  # the same tuple in two places is one
                memo[key] = build([part(made, given, memo) for part in parts])
            return memo[key]

        self._kept.append(value)
        return make

    def _shared(self, key: int, build: Callable[[dict, list, list], Any]) -> Maker:
        def make(made: list, given: list, memo: dict) -> Any:
            if key not in memo:
                build(memo, made, given)
            return memo[key]

        return make

    def _mutable(self, value: Any) -> Callable[[dict, list, list], None]:
        """Puts a new object under the id of this one, then fills it: it may hold itself."""
        kind, key = type(value), id(value)
        if isinstance(value, _UNMADE):
            raise Decline(f"it returns a {kind.__name__} that it created")
        if is_array(value):
            return lambda memo, made, given: memo.__setitem__(key, value.copy())
        fill: list[Callable] = []
        if isinstance(value, (list, collections.deque)):
            parts = [self.maker(item) for item in value]
            extend = list.extend if isinstance(value, list) else collections.deque.extend
            fill.append(lambda new, m, g, memo: extend(new, [p(m, g, memo) for p in parts]))
        elif isinstance(value, set):
            parts = [self.maker(item) for item in value]
            fill.append(lambda new, m, g, memo: set.update(new, [p(m, g, memo) for p in parts]))
        elif isinstance(value, dict):
            items = [(k, self.maker(v)) for k, v in dict_items(value)]
            store = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
            fill.append(lambda new, m, g, memo: [store.__setitem__(new, k, p(m, g, memo)) for k, p in items])
        elif not kind.__flags__ & (1 << 9) and kind is not object and kind is not bytearray:
            raise Decline(f"it returns a {kind.__name__} that it created")
        self._attributes(value, fill)

        def build(memo: dict, made: list, given: list) -> None:
            new = memo[key] = _empty(value)
            for step in fill:
                step(new, made, given, memo)

        return build

    def _attributes(self, value: Any, fill: list[Callable]) -> None:
        own = getattr(value, "__dict__", None)
        self._world.check_content(own)
        if isinstance(own, dict) and own:
            named = [(name, self.maker(item)) for name, item in own.items()]
            fill.append(lambda new, m, g, memo: new.__dict__.update({n: p(m, g, memo) for n, p in named}))
        for base in type(value).__mro__:
            for raw in vars(base).values():
                if isinstance(raw, types.MemberDescriptorType) and base.__flags__ & (1 << 9):
                    try:
                        part = self.maker(raw.__get__(value))
                    except AttributeError:
                        continue
                    fill.append(lambda new, m, g, memo, raw=raw, part=part: raw.__set__(new, part(m, g, memo)))

    # effects ---------------------------------------------------------------------------------------------

    def _dict_step(self, mapping: dict, written: dict) -> Callable:
        parts = [(key, ABSENT if value is ABSENT else self.maker(value)) for key, value in written.items()]
        store = collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict
        moved = {key for of, key in self._world.pending.moved if of == id(mapping)}

        def step(made: list, given: list, memo: dict) -> None:
            for key, part in parts:
                if part is ABSENT or key in moved:
                    store.pop(mapping, key, None)
                if part is not ABSENT:
                    store.__setitem__(mapping, key, part(made, given, memo))

        return step

    def _addition_step(self, container: Any, calls: list) -> Callable:
        def part_of(method: Any, value: Any) -> Maker:
            return self._sequence(value, list) if method.__name__ == "extend" else self.maker(value)

        parts = [(method, [part_of(method, a) for a in args]) for method, args in calls]

        def step(made: list, given: list, memo: dict) -> None:
            for method, args in parts:
                method(container, *[part(made, given, memo) for part in args])

        return step

    def _copy_step(self, container: Any, copy: Any) -> Callable:
        if isinstance(container, bytearray):
            return lambda made, given, memo: container.__setitem__(slice(None), copy)
        parts = [self.maker(item) for item in copy]

        def step(made: list, given: list, memo: dict) -> None:
            items = [part(made, given, memo) for part in parts]
            if isinstance(container, list):
                list.__setitem__(container, slice(None), items)
            else:
                container.clear()
                container.update(items) if isinstance(container, set) else container.extend(items)

        return step

    def _cell_step(self, cell: types.CellType, value: Any) -> Callable:
        part = self.maker(value) if value is not ABSENT else ABSENT

        def step(made: list, given: list, memo: dict) -> None:
            if part is ABSENT:
                del cell.cell_contents
            else:
                cell.cell_contents = part(made, given, memo)

        return step

    def _slot_step(self, owner: Any, descriptor: Any, value: Any) -> Callable:
        if value is ABSENT:
            return lambda made, given, memo: descriptor.__delete__(owner)
        part = self.maker(value)
        return lambda made, given, memo: descriptor.__set__(owner, part(made, given, memo))

    def _call_step(self, function: Callable, args: tuple, kwargs: dict) -> Callable:
        parts = [self.maker(a) for a in args]
        return lambda made, given, memo: function(*[part(made, given, memo) for part in parts], **kwargs)


def _detached(made: list, place: int, memo: dict) -> Tensor:
    key = "detached", place
    if key not in memo:
        memo[key] = made[place].detach()
    return memo[key]


def _results_at(places: int | tuple[int, ...]) -> Maker:
    """A maker that native code can do without: it knows the places."""

    def make(made: list, given: list, memo: dict) -> Any:
        return made[places] if isinstance(places, int) else tuple([made[p] for p in places])

    make.places = places  # type: ignore[attr-defined]
    return make


def _constant(value: Any) -> Maker:
    def make(made: list, given: list, memo: dict) -> Any:
        return value

    make.constant = True  # type: ignore[attr-defined]
    return make


def _empty(value: Any) -> Any:
    kind: Any = type(value)
    if kind is collections.deque:
        return collections.deque(maxlen=value.maxlen)
    if isinstance(value, bytearray):
        return bytearray(value)
    return kind.__new__(kind)


def dict_items(value: dict) -> list[tuple[Any, Any]]:
    return list(collections.OrderedDict.items(value) if isinstance(value, collections.OrderedDict) else dict.items(value))
