"""Observes the Python functions that run while one of them is captured, and notes what they read outside."""

from __future__ import annotations

import dis
import functools
import gc
import inspect
import os
import sys
import types
from typing import Any, NamedTuple

import oar
from oar._C import Tensor
from oar.jit.guards import Guards, is_simple
from oar.jit.random_states import RandomStates
from oar.nn.clip import ClipGradBase
from oar.nn.layer.layers import Layer
from oar.optimizer.optimizer import Optimizer
from oar.regularizer import WeightDecayRegularizer

__all__ = ["Observer", "ignore", "is_users_file"]

_PACKAGE = os.path.dirname(os.path.abspath(oar.__file__)) + os.sep
_STDLIB = os.path.dirname(os.__file__) + os.sep
_IGNORED = {"oar", "numpy", "paddle"}
# Rates are tensors that programs read anew; the rest of an optimizer's numbers is written into the program.
_RATES = frozenset({"_lr_value", "_learning_rate"})
_TRAINING = (Optimizer, ClipGradBase, WeightDecayRegularizer)
_SEARCHED = 64  # objects whose attributes are looked for by name, per function


def ignore(modules: list[Any]) -> None:
    """Functions of these modules are not looked into."""
    _IGNORED.update(getattr(module, "__name__", str(module)) for module in modules)


def is_users_file(path: str) -> bool:
    """Whether code in this file is the user's: not of this package, not of Python."""
    if path.startswith((_PACKAGE, "<frozen")):
        return False
    return not path.startswith(_STDLIB) or "site-packages" in path


class Reads(NamedTuple):
    """What a code object reads by name."""

    chains: tuple[tuple[str, str, tuple[str, ...]], ...]  # the kind of a variable, its name, attributes behind it
    loose: frozenset[str]  # attributes of values that have no name


_LOADS = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_FAST": "local",
    "LOAD_FAST_CHECK": "local",
    "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell",
    "LOAD_CLOSURE": "cell",
}
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "PRECALL", "PUSH_NULL", "NOP", "RESUME"})


def _arguments(code: types.CodeType) -> tuple[str, ...]:
    packed = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + packed]


@functools.lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    """Names with the attributes that are taken from them directly; other attributes are loose."""
    arguments = set(_arguments(code))
    chains: dict[tuple[str, str, tuple[str, ...]], None] = {}
    loose: set[str] = set()
    root: tuple[str, str] | None = None
    attributes: list[str] = []

    def close() -> None:
        nonlocal root
        if root is not None:
            if root[0] == "local" and root[1] not in arguments:
                loose.update(attributes)
            elif root[0] != "local" or attributes:
                chains[(*root, tuple(attributes))] = None
        root = None
        attributes.clear()

    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _SKIPPED:
            continue
        if name in _ATTRIBUTES:
            if root is None:
                loose.add(instruction.argval)
            else:
                attributes.append(instruction.argval)
            continue
        close()
        if name in _LOADS:
            root = (_LOADS[name], instruction.argval)
    close()
    for constant in code.co_consts:  # functions that are made inside see the same names
        if isinstance(constant, types.CodeType):
            inner = reads_of(constant)
            chains.update(dict.fromkeys(chain for chain in inner.chains if chain[0] == "global"))
    return Reads(tuple(chains), frozenset(loose))


class Observer:
    """Within it, the functions that run on this thread are noted in ``guards``."""

    def __init__(self, function: Any) -> None:
        self.guards = Guards()
        self.random = RandomStates()
        self.impure: str | None = None  # what it asks for that is another thing at every call
        self._seen: set[tuple[int, int]] = set()
        self._kinds: dict[types.CodeType, int] = {}
        self._functions: dict[types.CodeType, types.FunctionType] = {}
        self._inner: set[types.CodeType] = set()
        self._know(function)

    def __enter__(self) -> Observer:
        self._before = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *exc: Any) -> None:
        sys.setprofile(self._before)
        self.impure = self.impure or self.random.drawn()

    def _event(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if event == "call":
            kind = self._kinds.get(frame.f_code)
            if kind is None:
                kind = self._kinds[frame.f_code] = _kind_of(frame)
            if kind:
                self._enter(frame, kind == 2)
        elif event == "c_call":
            self.impure = self.impure or _impurity(arg)

    def _enter(self, frame: types.FrameType, users: bool) -> None:
        code = frame.f_code
        has_self = code.co_argcount > 0
        first = frame.f_locals.get(code.co_varnames[0]) if has_self else None
        if (code, id(first)) in self._seen:
            return
        self._seen.add((code, id(first)))
        if users:
            self._note_users(frame, code)
        elif isinstance(first, _TRAINING):
            self._note_numbers(first, code)
        if isinstance(first, Layer):
            self.guards.layer(first)
            if not users:
                self._note_attributes(first, code, code.co_varnames[0])

    # code of the package -----------------------------------------------------------------------

    def _note_attributes(self, layer: Layer, code: types.CodeType, name: str) -> None:
        for kind, root, attributes in reads_of(code).chains:
            if kind == "local" and root == name and attributes:
                self._follow(layer, attributes, layer.full_name(), [])

    def _note_numbers(self, owner: Any, code: types.CodeType) -> None:
        for name in code.co_names:
            if name in owner.__dict__ and name not in _RATES and is_simple(owner.__dict__[name]):
                self.guards.entry(owner.__dict__, name, f"{type(owner).__name__}.{name}")

    # code of the user --------------------------------------------------------------------------

    def _note_users(self, frame: types.FrameType, code: types.CodeType) -> None:
        reads = reads_of(code)
        found: list[Any] = []
        values = frame.f_locals
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._inner.add(constant)
        cells = self._cells_of(frame, code)
        for kind, root, attributes in reads.chains:
            if kind == "global":
                value = self.guards.entry(frame.f_globals, root, f"global {root}")
            elif kind == "cell" and root in cells:
                value = self.guards.cell(cells[root], f"variable {root} of the enclosing function")
            else:
                value = values.get(root)
            self._know(value)
            self._visit(value, found)
            self._follow(value, attributes, root, found)
        for name in _arguments(code):
            self._know(values.get(name))
            self._visit(values.get(name), found)
        for value in found[:_SEARCHED]:
            for name in reads.loose:
                if name in getattr(value, "__dict__", ()):
                    self._attribute(value, name, type(value).__name__)

    def _cells_of(self, frame: types.FrameType, code: types.CodeType) -> dict[str, types.CellType]:
        """The cells of a function's free variables. Frames do not tell them, so its function is looked for."""
        if not code.co_freevars or code in self._inner:
            return {}
        function = self._functions.get(code)
        if function is None:
            candidates = [f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType)]
            function = next((f for f in candidates if _closes_over(f, frame)), None)
            if function is None:
                return {}
        return dict(zip(code.co_freevars, function.__closure__ or ()))

    def _know(self, value: Any) -> None:
        value = getattr(value, "__func__", value)
        if isinstance(value, types.FunctionType):
            self._functions.setdefault(value.__code__, value)
            for default in value.__defaults__ or ():
                self.guards.content(default, f"a default argument of {value.__name__}")

    def _visit(self, value: Any, found: list[Any]) -> None:
        """Objects whose attributes may be read without a name that leads there."""
        self.random.meet(value)
        if isinstance(value, (list, tuple)):
            for item in value[:_SEARCHED]:
                self._visit(item, found)
        elif isinstance(value, dict):
            for item in list(value.values())[:_SEARCHED]:
                self._visit(item, found)
        elif _has_attributes(value):
            found.append(value)

    def _follow(self, value: Any, attributes: tuple[str, ...], label: str, found: list[Any]) -> None:
        for name in attributes:
            if not _has_attributes(value) and not isinstance(value, (type, types.ModuleType)):
                return
            label = f"{label}.{name}"
            value = self._attribute(value, name, label)
            if value is None:
                return
            self._know(value)
            self._visit(value, found)

    def _attribute(self, owner: Any, name: str, label: str) -> Any:
        if isinstance(owner, types.ModuleType):
            if not _is_users_module(owner):
                return None
            return self.guards.entry(vars(owner), name, label)
        if isinstance(owner, Layer) and name in owner.__dict__:
            return self.guards.layer_entry(owner, name, label)
        if not isinstance(owner, type) and name in getattr(owner, "__dict__", ()):
            if isinstance(owner, _TRAINING) and name in _RATES:
                return None
            return self.guards.entry(owner.__dict__, name, label)
        for base in (owner if isinstance(owner, type) else type(owner)).__mro__:
            if name not in base.__dict__:
                continue
            value = base.__dict__[name]
            if isinstance(value, types.MemberDescriptorType):
                return self.guards.slot(owner, name, label)
            if base.__module__.partition(".")[0] not in _IGNORED:
                self.guards.entry(base.__dict__, name, label)
            return None if isinstance(value, property) else value
        return None


def _kind_of(frame: types.FrameType) -> int:
    """0: not looked into; 1: code of this package; 2: the user's."""
    path = frame.f_code.co_filename
    if path.startswith(_PACKAGE):
        return 1
    if not is_users_file(path):
        return 0
    name = frame.f_globals.get("__name__", "")
    return 0 if any(name == m or name.startswith(m + ".") for m in _IGNORED) else 2


def _is_users_module(module: types.ModuleType) -> bool:
    root = module.__name__.partition(".")[0]
    return root not in _IGNORED and module.__name__ not in _IGNORED and root not in sys.stdlib_module_names


def _has_attributes(value: Any) -> bool:
    if value is None or isinstance(value, (Tensor, type, types.ModuleType, types.FunctionType, types.MethodType)):
        return False
    return not is_simple(value) and (hasattr(value, "__dict__") or hasattr(type(value), "__slots__"))


def _closes_over(function: types.FunctionType, frame: types.FrameType) -> bool:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            if cell.cell_contents is not frame.f_locals.get(name):
                return False
        except ValueError:
            return False
    return True


def _impurity(function: Any) -> str | None:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, types.ModuleType) and owner.__name__ == "time" and function.__name__ != "sleep":
        return f"it asks for the time (time.{function.__name__})"
    return None
