"""Python's own functions on objects, classes and attributes, as the interpreter does them."""

from __future__ import annotations

import abc
import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret.calls import builtin
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.machine import Machine
from oar.jit._interpret.world import ABSENT, Decline, Raised, is_known_by_value

def _class_of(m: Machine, value: Any) -> type:
    if isinstance(value, Generator):
        raise Decline("it reads the class of a generator")
    if id(value) in m.world.numbers:
        return m.world.numbers[id(value)]
    if m.world.is_input(value):
        return type(m.world.inputs[id(value)])
    cls = type(value)
    if cls is _C.Dim:
        return int  # an open size counts as a number
    if cls.__flags__ & (1 << 9) and not isinstance(value, Tensor):
        m.world.own_dict(value)
    return cls


@builtin(type)
def _type(m: Machine, args: list, kwargs: dict) -> Any:
    if len(args) != 1:
        raise Decline("it creates a class")
    return _class_of(m, args[0])


@builtin(isinstance)
def _isinstance(m: Machine, args: list, kwargs: dict) -> Any:
    value, wanted = args
    cls = _class_of(m, value)
    m.world.guards.bases(cls)
    m.world.check_class(cls)
    for one in _classes(wanted):
        _note_registrations(m, one)
        check = m.world.class_attribute(type(one), "__instancecheck__")
        if isinstance(check, types.FunctionType) and type(one) is not abc.ABCMeta:
            if m.truth(m.call(check, [one, value], {})):
                return True
        elif cls is not type(value):
            if issubclass(cls, one):
                return True
        elif m.native(lambda one=one: isinstance(value, one)):
            return True
    return False


def _note_registrations(m: Machine, cls: Any) -> None:
    """What is an instance of an abstract class depends on ``register`` too."""
    if isinstance(type(cls), type) and issubclass(type(cls), abc.ABCMeta):
        m.world.guards.registrations()


def _classes(wanted: Any) -> list:
    if isinstance(wanted, tuple):
        return [cls for one in wanted for cls in _classes(one)]
    if isinstance(wanted, types.UnionType):
        return list(wanted.__args__)
    return [wanted]


@builtin(issubclass)
def _issubclass(m: Machine, args: list, kwargs: dict) -> Any:
    cls, wanted = args
    if not isinstance(cls, type):
        raise Raised(TypeError("issubclass() arg 1 must be a class"))
    m.world.guards.bases(cls)
    for one in _classes(wanted):
        _note_registrations(m, one)
        if m.world.has_python_method(type(one), "__subclasscheck__") and type(one) is not abc.ABCMeta:
            raise Decline("a class defines __subclasscheck__")
    return m.native(lambda: issubclass(cls, wanted))


@builtin(callable)
def _callable(m: Machine, args: list, kwargs: dict) -> Any:
    cls = _class_of(m, args[0])
    m.world.class_attribute(cls, "__call__")
    return callable(args[0])


@builtin(getattr)
def _getattr(m: Machine, args: list, kwargs: dict) -> Any:
    if not isinstance(args[1], str):
        return m.native(lambda: getattr(None, args[1]))
    if len(args) == 2:
        return m.load_attribute(args[0], args[1])
    try:
        found = m.find_attribute(args[0], args[1])
    except Raised as raised:
        if not isinstance(raised.error, AttributeError):
            raise
        found = ABSENT
    return args[2] if found is ABSENT else found


@builtin(hasattr)
def _hasattr(m: Machine, args: list, kwargs: dict) -> Any:
    try:
        return m.find_attribute(args[0], args[1]) is not ABSENT
    except Raised as raised:
        if not isinstance(raised.error, AttributeError):
            raise
        return False


@builtin(setattr)
def _setattr(m: Machine, args: list, kwargs: dict) -> Any:
    m.store_attribute(args[0], args[1], args[2])


@builtin(delattr)
def _delattr(m: Machine, args: list, kwargs: dict) -> Any:
    m.store_attribute(args[0], args[1], ABSENT)


@builtin(vars)
def _vars(m: Machine, args: list, kwargs: dict) -> Any:
    if not args:
        raise Decline("it reads its variables")
    return m.load_attribute(args[0], "__dict__")


@builtin(id)
def _id(m: Machine, args: list, kwargs: dict) -> Any:
    if m.in_users_code() and (m.world.is_input(args[0]) or m.world.is_argument(args[0])):
        raise Decline("it reads the identity of an argument")
    if m.in_users_code() and is_known_by_value(args[0]):
        raise Decline(f"it reads the identity of a {type(args[0]).__name__}")
    return id(args[0])


@builtin(hash)
def _hash(m: Machine, args: list, kwargs: dict) -> Any:
    if m.world.has_python_method(type(args[0]), "__hash__"):
        return m.call(m.world.class_attribute(type(args[0]), "__hash__"), args, {})
    m.check_key(args[0])
    return m.native(lambda: hash(args[0]))


@builtin(super)
def _super(m: Machine, args: list, kwargs: dict) -> Any:
    if not args:
        frame = m.frames[-1]
        cell = frame.cells.get("__class__")
        if cell is None:
            raise Decline("it calls super() outside a class")
        first = frame.code.local_names[0]
        owner = frame.locals.get(first, ABSENT)
        if owner is ABSENT:
            owner = m.world.cell(frame.cells[first], first)
        args = [m.world.cell(cell, "__class__"), owner]
    if len(args) != 2:
        raise Decline("it creates an unbound super()")
    return m.native(lambda: super(args[0], args[1]))


@builtin(object)
def _object(m: Machine, args: list, kwargs: dict) -> Any:
    return m.world.new(m.native(lambda: object(*args, **kwargs)))
