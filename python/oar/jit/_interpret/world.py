"""The objects that an interpreted function uses: what it created, what it found outside, what it will change.

The rule that makes a program safe to reuse: whatever is read from outside is guarded at the moment it is read, and
nothing outside is changed while the function is interpreted. A change is deferred as a *pending write*; reads see it first, and
it is done after the program has run, at every run.
"""

from __future__ import annotations

import collections
import contextlib
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret.kept import KeptCell, KeptEntry, KeptSlot
from oar.jit._interpret.pending import ABSENT, PendingWrites

__all__ = ["ABSENT", "IMMUTABLE", "Decline", "Raised", "Restart", "World", "is_array", "is_known_by_value"]

class Decline(BaseException):
    """The function cannot be one program; the text says why. Not caught by users' ``except`` clauses."""


class Restart(BaseException):
    """A lasting object was created outside the program, such as an optimizer's state: start again and find it."""


class Raised(Exception):  # noqa: N818
    """An exception of the interpreted function."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


_PLAIN = (int, float, str, bool, complex, bytes, type(None), type(Ellipsis), type(NotImplemented))
# What a program is made of, rather than what it works on.
_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, staticmethod, classmethod, property,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, _C.OpFunction, _C.SpelledFunction,
)
# Objects that never change and whose methods run no Python code.
IMMUTABLE: set[type] = {
    *_PLAIN, range, type, types.BuiltinFunctionType, _C.dtype, _C.OpFunction, _C.SpelledFunction, types.ModuleType, types.CodeType,
}
_CLASS = vars(object)["__class__"]
_LISTS = (list, collections.deque, bytearray)
_SETS = (set,)


def is_array(value: Any) -> bool:
    """Whether it is a NumPy array, without importing NumPy for the question."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_known_by_value(value: Any) -> bool:
    """Whether guards take an equal object for the same one."""
    return type(value) in (int, float, complex, str, bytes, tuple) or type(value) is _C.Dim


def _is_scalar_of_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and not is_array(value)


class World:
    """What a function has created and what it has found."""

    def __init__(self, trusts: Callable[[], bool] = lambda: False) -> None:
        self.guards = _C.Guards()
        self._trusts = trusts  # whether the code that runs is this package's
        self._made_before: frozenset[int] | None = None  # … the derivative that is interpreted
        self.pending = PendingWrites()
        self._fresh: dict[int, Any] = {}
        self._arguments: dict[int, Any] = {}  # containers that represent the caller's own
        self.inputs: dict[int, Tensor] = {}  # symbolic tensors that represent the caller's
        self._iterated: set[int] = set()
        self.numbers: dict[int, type] = {}  # tensors that represent Python numbers
        self.keeps_tensors = False  # whether these are tensors for the caller
        self.origins: dict[int, tuple[Tensor, Tensor]] = {}  # tensors that may be one from outside, and which
        self.numbered: list[Tensor] = []
        self.joined: dict[int, tuple[Tensor, list]] = {}  # tensors that may be one of others, which the function created
        self.asking: dict[int, tuple[Tensor, Tensor]] = {}  # tensors that may require a gradient, and whether they do
        self.asked: set[int] = set()  # outside tensors that require a gradient and were read in this region
        self.asked_one_way: set[int] = set()  # … in one way of a branch, and not in the other
        self._checked: set[type] = set()
        self.unknown: dict[int, str] = {}  # by id: objects whose content depends on a branch, and why it is not known
        self._read: dict[tuple[int, Any], tuple[Any, str]] = {}  # entries of dictionaries, and what was there
        self._outside: dict[int, Tensor] = {}  # tensors that were there before
        self.dict_copies: dict[int, dict] = {}  # of outside dictionaries that were iterated over; writes reach them too
        self.kept: dict[tuple, Tensor] = {}  # by place: inputs that the function keeps outside

    # what the function created -------------------------------------------------------------------

    def new(self, value: Any) -> Any:
        """Records an object that the function created: it is read and written directly."""
        self._fresh[id(value)] = value
        return value

    def new_deep(self, value: Any, given: Any = ()) -> Any:
        """The same for a result of native code, with the containers in it, but for those in what it was given."""
        parts = list(_containers(value))
        if parts:
            known = {id(part) for part in _containers(given)}
            self._fresh.update((id(part), part) for part in parts if id(part) not in known and type(part) is not tuple)
        return value

    def is_fresh(self, value: Any) -> bool:
        return id(value) in self._fresh

    def argument(self, value: Any) -> Any:
        """Takes note of a container that was rebuilt from one of the caller's: its content is part of the key."""
        self._arguments[id(value)] = value
        return value

    def is_argument(self, value: Any) -> bool:
        return id(value) in self._arguments

    def is_input(self, value: Any) -> bool:
        return id(value) in self.inputs

    def fresh_objects(self) -> dict[int, Any]:
        return self._fresh

    def check_content(self, container: Any) -> None:
        """Declines an object whose content depends on the way that a tensor chose."""
        if self.unknown and id(container) in self.unknown:
            raise Decline(self.unknown[id(container)])

    # derivatives ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def derivative(self) -> Iterator[None]:
        """While a hook or the backward of a ``PyLayer`` is interpreted that runs later, at ``backward()``.

        What it reads outside may change until then, and what it changes is not changed by the call.
        """
        outer, self._made_before = self._made_before, frozenset(self._fresh)
        try:
            yield
        finally:
            self._made_before = outer

    def check_effect(self, what: str, own_code: bool = False) -> None:
        """Declines what a derivative must not do, or only the user's code in it."""
        if self._made_before is not None and not (own_code and self._trusts()):
            raise Decline(f"{what} in a hook, or in the backward of a PyLayer")

    def _check_change(self, value: Any) -> None:
        if self._made_before is not None and (id(value) in self._made_before or id(value) not in self._fresh):
            self.check_effect(f"it changes a {type(value).__name__}", own_code=True)

    def check_state(self, value: Any, label: str) -> None:
        """Declines a derivative that reads from outside what may be another one when it runs."""
        if self._made_before is not None and value is not ABSENT and not isinstance(value, _CODE):
            self.check_effect(f"it reads {label}", own_code=True)

    # dictionaries --------------------------------------------------------------------------------

    def entry(self, mapping: dict, key: Any, label: str) -> Any:
        """What a dictionary has under a key, or ``ABSENT``."""
        self.check_content(mapping)
        if id(mapping) in self._fresh or id(mapping) in self._arguments:
            return dict.get(mapping, key, ABSENT)
        waiting = self.pending.dicts.get(id(mapping))
        if waiting is not None and key in waiting[1]:
            return waiting[1][key]
        if self.kept and (id(mapping), key) in self.kept:
            return self.kept[id(mapping), key]
        value = dict.get(mapping, key, ABSENT)
        if not _is_of_package(mapping):
            self.check_state(value, label)
        self.guards.entry(mapping, key, value, label)
        self._read.setdefault((id(mapping), key), (value, label))
        return self.met(value)

    def has_entry(self, mapping: dict, key: Any, label: str) -> bool:
        """Whether a dictionary has something under a key, whatever it is."""
        self.check_content(mapping)
        if id(mapping) in self._fresh or id(mapping) in self._arguments:
            return dict.__contains__(mapping, key)
        waiting = self.pending.dicts.get(id(mapping))
        if waiting is not None and key in waiting[1]:
            return waiting[1][key] is not ABSENT
        found = dict.__contains__(mapping, key)
        self.check_effect(f"it looks for {label}", own_code=True)
        self.guards.entry(mapping, key, _C.Guards.PRESENT if found else ABSENT, label)
        return found

    def met(self, value: Any) -> Any:
        """Takes note of a tensor that was there before."""
        self.check_class(type(value))
        if isinstance(value, Tensor):
            self._outside[id(value)] = value
            if not value.stop_gradient:
                self.asked.add(id(value))
        return value

    def number_of(self, tensor: Tensor) -> int:
        """A number above 0 for a tensor from outside or of the caller's."""
        for i, one in enumerate(self.numbered):
            if one is tensor:
                return i + 1
        self.numbered.append(tensor)
        return len(self.numbered)

    def check_write(self, tensor: Any) -> None:
        """Declines a write in place that may reach a tensor under another name, as a branch says."""
        self.check_effect("it writes to a tensor")
        if self.origins or self.joined:
            if not self.is_outside(tensor) or any(tensor is one for one in self.numbered):
                raise Decline("it writes in place to a tensor that may be one of several, depending on a branch")

    def outside(self) -> dict[int, Tensor]:
        """The tensors that were there before, by id."""
        return self._outside

    def is_outside(self, tensor: Tensor) -> bool:
        return id(tensor) in self._outside

    def set_entry(self, mapping: dict, key: Any, value: Any) -> None:
        self.check_content(mapping)
        self._check_change(mapping)
        if id(mapping) in self._fresh:
            _dict_type(mapping).__setitem__(mapping, key, value)
            return
        self._writable(mapping)
        self.pending.set_entry(mapping, key, value)
        if id(mapping) in self.dict_copies:
            self.set_entry(self.dict_copies[id(mapping)], key, value)

    def delete_entry(self, mapping: dict, key: Any) -> None:
        self.check_content(mapping)
        self._check_change(mapping)
        if id(mapping) in self._fresh:
            _dict_type(mapping).__delitem__(mapping, key)
            return
        self._writable(mapping)
        self.pending.delete_entry(mapping, key)
        if id(mapping) in self.dict_copies:
            self.delete_entry(self.dict_copies[id(mapping)], key)

    # whole containers ----------------------------------------------------------------------------

    def content(self, container: Any, label: str = "a container") -> Any:
        """The container to read from: itself, guarded, or the copy that has the pending writes."""
        self.check_content(container)
        if id(container) in self._fresh or id(container) in self._arguments:
            return container
        copy = self.pending.copies.get(id(container))
        if copy is not None:
            return copy[1]
        if id(container) in self.pending.additions:
            return self.writable(container)
        if id(container) in self.dict_copies:
            return self.dict_copies[id(container)]
        self.check_effect(f"it reads {label}", own_code=True)
        self.guards.content(container, label)
        if not is_array(container):
            for item in container.values() if isinstance(container, dict) else container:
                self.met(item)
        return self._copy_of(container) if isinstance(container, dict) else container

    def _copy_of(self, mapping: dict) -> dict:
        """The current content of an outside dictionary, for an iteration while it is changed."""
        copy = self.dict_copies[id(mapping)] = self.new(_dict_type(mapping)(_dict_type(mapping).items(mapping)))
        for key, value in self.pending.dicts.get(id(mapping), (mapping, {}))[1].items():
            if value is ABSENT or (id(mapping), key) in self.pending.moved:
                copy.pop(key, None)
            if value is not ABSENT:
                copy[key] = value
        return copy

    def writable(self, container: Any) -> Any:
        """The list or set to write to: itself if the function created it, else the pending copy."""
        self.check_content(container)
        self._check_change(container)
        if id(container) in self._fresh:
            return container
        copy = self.pending.copies.get(id(container))
        if copy is None:
            self._writable(container)
            if id(container) in self._iterated:
                raise Decline("it changes a list that it iterates over")
            self.guards.content(container, "a container that is changed")
            copy = self.pending.copies[id(container)] = (container, self.new(_copy(container)))
            for method, args in self.pending.additions.pop(id(container), (None, ()))[1]:
                method(copy[1], *args)
        return copy[1]

    def add(self, container: Any, method: Any, args: list) -> bool:
        """Adds to a list or set without reading its content. False if it must be written as usual."""
        if id(container) in self._fresh or id(container) in self._arguments or id(container) in self.pending.copies:
            return False
        self._check_change(container)
        self.pending.additions.setdefault(id(container), (container, []))[1].append((method, args))
        return True

    def _writable(self, container: Any) -> None:
        if id(container) in self._arguments:
            raise Decline(f"it changes a {type(container).__name__} that was passed to it")

    def iterated(self, container: Any) -> Any:
        """The container to go over. A list or set must not get a copy meanwhile."""
        if id(container) not in self._fresh:
            self._iterated.add(id(container))
        return self.content(container)

    # variables and slots -------------------------------------------------------------------------

    def cell(self, cell: types.CellType, label: str) -> Any:
        if id(cell) not in self._fresh:
            waiting = self.pending.cells.get(id(cell))
            if waiting is not None:
                return waiting[1]
            if (id(cell),) in self.kept:
                return self.kept[id(cell),]
        try:
            value = cell.cell_contents
        except ValueError:
            value = ABSENT
        if id(cell) not in self._fresh:
            self.check_state(value, label)
            self.guards.cell(cell, value, label)
        self.check_content(cell)
        return self.met(value) if id(cell) not in self._fresh else value

    def set_cell(self, cell: types.CellType, value: Any) -> None:
        self._check_change(cell)
        if id(cell) not in self._fresh:
            self.pending.cells[id(cell)] = (cell, value)
        elif value is ABSENT:
            del cell.cell_contents
        else:
            cell.cell_contents = value

    def slot(self, owner: Any, descriptor: Any, label: str) -> Any:
        """An attribute that is kept in a slot."""
        waiting = self.pending.slots.get((id(owner), id(descriptor)))
        if waiting is not None:
            return waiting[2]
        if (id(owner), id(descriptor), "slot") in self.kept:
            return self.kept[id(owner), id(descriptor), "slot"]
        try:
            value = descriptor.__get__(owner)
        except AttributeError:
            value = ABSENT
        if id(owner) not in self._fresh:
            self.check_state(value, label)
            self.guards.slot(owner, descriptor, value, label)
            self.met(value)
        return value

    def set_slot(self, owner: Any, descriptor: Any, value: Any) -> None:
        self._check_change(owner)
        if id(owner) not in self._fresh:
            self.pending.slots[id(owner), id(descriptor)] = (owner, descriptor, value)
        elif value is ABSENT:
            descriptor.__delete__(owner)
        else:
            descriptor.__set__(owner, value)

    def own_dict(self, value: Any) -> dict | None:
        """The dictionary of an object's attributes; that the object keeps class and dictionary is guarded."""
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            own = None
        if id(value) in self._fresh:
            if own is not None:
                self._fresh[id(own)] = own
        else:
            self.guards.object(value)
        return own if isinstance(own, dict) else None

    def class_attribute(self, cls: type, name: str) -> Any:
        """What a class and its bases have under a name, as it is in their dictionaries."""
        raw = _C.Guards.lookup(cls, name)
        if id(cls) not in self._fresh:
            if not name.startswith("__"):
                self.check_state(raw, f"{cls.__name__}.{name}")
            self.guards.class_attribute(cls, name)
        return raw

    def check_class(self, cls: type) -> None:
        """Declines a class of objects that notice every access: ``isinstance`` would run the user's Python."""
        if cls not in self._checked:
            self._checked.add(cls)
            if self.class_attribute(cls, "__class__") is not _CLASS or self.has_python_method(cls, "__getattribute__"):
                raise Decline(f"a {cls.__name__} notices every access")

    def has_python_method(self, cls: type, name: str) -> bool:
        """Whether instances have the method in Python, so that native code would run the user's."""
        return isinstance(self.class_attribute(cls, name), (types.FunctionType, _C.SpelledFunction))

    def undone_by_itself(self) -> list[tuple[str, Any]]:
        """What the function reads and then changes, so that a program would be valid for one call only, and where.

        What is created at the first call and kept does not count: the next call finds it.
        """
        found: list[tuple[str, Any]] = []
        for mapping, written in self.pending.dicts.values():
            for key, value in written.items():
                then, label = self._read.get((id(mapping), key), (ABSENT, ""))
                if then is not ABSENT and then is not None and not _C.Guards.same(then, value):
                    found.append((label, KeptEntry(mapping, key)))
        for cell, value in self.pending.cells.values():
            place = KeptCell(cell)
            if place.name not in self.kept and place.read() is not None and not _C.Guards.same(place.read(), value):
                found.append(("a variable of the enclosing function", place))
        for owner, descriptor, value in self.pending.slots.values():
            slot = KeptSlot(owner, descriptor)
            if slot.name not in self.kept and slot.read() is not None and not _C.Guards.same(slot.read(), value):
                found.append((f"{type(owner).__name__}.{descriptor.__name__}", slot))
        for container, copy in self.pending.copies.values():
            if len(container) != len(copy) or not all(a is b for a, b in zip(container, copy)):
                found.append((f"a {type(container).__name__}", None))
        return found

    def check_kept(self, tensors: list[Tensor]) -> None:
        """Declines a kept tensor that the function also finds elsewhere: a write to one would be seen by the other."""
        for tensor in tensors:
            if self.is_outside(tensor):
                raise Decline("it keeps a tensor in two places")

    # handing values to native code -----------------------------------------------------------------

    def settled(self, value: Any, what: str, tensors: bool = True) -> Any:
        """A value that native code may read: nothing in it runs Python or changes unseen. Raises ``Decline``."""
        kind = type(value)
        if kind in IMMUTABLE or kind is re.Pattern:
            return value
        if isinstance(value, Tensor):
            if tensors and id(value) not in self.numbers:
                return value
            raise Decline(f"{what} reads a tensor")
        if kind is tuple or kind is frozenset or kind is slice:
            parts = (value.start, value.stop, value.step) if kind is slice else value
            made = [self.settled(item, what, tensors) for item in parts]
            if all(a is b for a, b in zip(made, parts)):
                return value
            return slice(*made) if kind is slice else kind(made)
        if kind is list or kind in _SETS:
            return self._settled_items(self.content(value), what, tensors)
        if kind is dict or kind is collections.OrderedDict:
            held = self.content(value)
            entries = {self.settled(k, what, tensors): self.settled(v, what, tensors) for k, v in held.items()}
            same = all(entries[k] is v for k, v in held.items())
            return held if same else kind(entries)
        if kind is _C.Dim:
            if tensors:
                return value
            raise Decline(f"{what} needs an open size as a number")
        if is_array(value):
            if value.dtype.hasobject:
                raise Decline(f"{what} gets an array of objects")
            if not self.is_fresh(value):
                self.check_effect("it reads an array")
                self.guards.content(value, "an array")
            return value
        if _is_scalar_of_numpy(value) or kind.__module__ == "numpy.dtypes" or kind.__name__ == "dtype":
            return value
        if isinstance(value, type) or isinstance(value, _PLAIN) and _native_type(kind):
            return value
        if kind.__flags__ & (1 << 9) == 0 and kind.__module__.startswith("oar."):
            return value  # a native type of ours: a place, a generator
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            made = [self.settled(item, what, tensors) for item in value]
            return value if all(a is b for a, b in zip(made, value)) else kind._make(made)
        raise Decline(f"{what} gets a {kind.__name__}")

    def _settled_items(self, held: Any, what: str, tensors: bool) -> Any:
        made = [self.settled(item, what, tensors) for item in held]
        return held if all(a is b for a, b in zip(made, held)) else type(held)(made)


def _is_of_package(mapping: dict) -> bool:
    """Whether it has the names of a module of this package, such as ``oar.float32``."""
    name = dict.get(mapping, "__name__")
    return isinstance(name, str) and name.partition(".")[0] == "oar"


def _containers(value: Any) -> Iterator[Any]:
    """A container and those in it."""
    if type(value) in (list, tuple, set, dict, collections.OrderedDict, bytearray):
        yield value
        if type(value) is not bytearray:
            for item in value.values() if isinstance(value, dict) else value:
                yield from _containers(item)


def _native_type(kind: type) -> bool:
    """A subclass of a number or a string that overrides nothing, such as an enumeration of ints."""
    return all(base in _PLAIN or base is object or not any(callable(v) for v in vars(base).values())
               for base in kind.__mro__)


def _copy(container: Any) -> Any:
    if isinstance(container, collections.deque):
        return collections.deque(container, container.maxlen)
    for kind in (list, set, bytearray):
        if isinstance(container, kind):
            return kind(container)
    raise Decline(f"it changes a {type(container).__name__}")


def _dict_type(mapping: dict) -> type[dict]:
    """The type whose methods do the work, and run no Python."""
    return collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict
