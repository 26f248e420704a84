"""Frames of interpreted functions, and how arguments are bound."""

from __future__ import annotations

import inspect
import types
from typing import Any

from oar.jit._interpret.code import Code, decoded
from oar.jit._interpret.world import ABSENT, Decline, World

__all__ = ["NULL", "Frame", "Generator", "bound_arguments"]

NULL: Any = type("_Null", (), {"__repr__": lambda self: "NULL"})()


class Frame:
    """One running call."""

    __slots__ = ("builtins", "caught", "cells", "code", "function", "globals", "index", "keywords", "locals", "stack")

    def __init__(self, function: types.FunctionType, code: Code, values: dict[str, Any], world: World) -> None:
        self.function = function
        self.code = code
        self.globals = function.__globals__
        self.builtins = function.__builtins__  # type: ignore[attr-defined]
        self.index = 0
        self.stack: list[Any] = []
        self.locals = values
        self.keywords: tuple[str, ...] = ()
        self.caught: list[Any] = []  # exceptions that are being handled
        self.cells: dict[str, types.CellType] = dict(zip(code.free_names, function.__closure__ or ()))
        for name in code.cell_names:
            cell = types.CellType()
            if name in values:
                cell.cell_contents = values.pop(name)
            self.cells[name] = world.new(cell)

    def copy(self) -> Frame:
        """A copy of the state, to continue on another path."""
        other = Frame.__new__(Frame)
        for name in Frame.__slots__:
            setattr(other, name, getattr(self, name))
        other.stack, other.locals, other.caught = list(self.stack), dict(self.locals), list(self.caught)
        return other

    @property
    def line(self) -> int:
        at = max(0, min(self.index - 1, len(self.code.instructions) - 1))
        return self.code.instructions[at].line


class Generator:
    """A generator that is interpreted."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.started = self.ended = self.running = False

    def waits_in_a_handler(self) -> bool:
        """Whether it has yielded inside a ``try`` or ``with`` statement and was not resumed."""
        return self.started and not self.ended and self.frame.code.handler_of(self.frame.index - 1) is not None


def bound_arguments(function: types.FunctionType, args: list, kwargs: dict, world: World) -> dict[str, Any]:
    """The function's variables at its beginning. A call that does not fit is left to Python, which raises the error."""
    code = function.__code__
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    values: dict[str, Any] = dict(zip(names[:count], args))
    if len(args) > count:
        if not code.co_flags & inspect.CO_VARARGS:
            raise Decline(f"{function.__name__}() gets too many arguments")
    rest = dict(kwargs)
    for name in names[code.co_posonlyargcount:count + only]:
        if name in rest:
            if name in values:
                raise Decline(f"{function.__name__}() gets '{name}' twice")
            values[name] = rest.pop(name)
    defaults = function.__defaults__ or ()
    for name, default in zip(names[count - len(defaults):count], defaults):
        values.setdefault(name, default)
    if only:
        given = function.__kwdefaults__
        for name in names[count:count + only]:
            if name not in values and given is not None:
                default = world.entry(given, name, f"the default of {name}")
                if default is not ABSENT:
                    values[name] = default
    if len(values) < count + only:
        raise Decline(f"{function.__name__}() gets too few arguments")
    at = count + only
    if code.co_flags & inspect.CO_VARARGS:
        values[names[at]] = tuple(args[count:])
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        values[names[at]] = world.new(rest)
    elif rest:
        raise Decline(f"{function.__name__}() does not take '{next(iter(rest))}'")
    return values


def frame_of(function: types.FunctionType, args: list, kwargs: dict, world: World) -> Frame:
    """A frame at the beginning of the function."""
    if not world.is_fresh(function):
        world.guards.function(function)
    return Frame(function, decoded(function.__code__), bound_arguments(function, args, kwargs, world), world)
