"""Instructions for functions, exceptions, contexts and patterns."""

from __future__ import annotations

import sys
import types
from typing import Any

from oar.jit._interpret.code import Instruction
from oar.jit._interpret.container_instructions import popped
from oar.jit._interpret.frame import NULL, Frame, Generator
from oar.jit._interpret.machine import Machine, instruction, returned, yielded
from oar.jit._interpret.world import ABSENT, Decline, Raised

# ---- functions ------------------------------------------------------------------------------------------------------


@instruction("KW_NAMES")
def _kw_names(m: Machine, f: Frame, i: Instruction) -> None:
    f.keywords = f.code.raw.co_consts[i.arg]


@instruction("CALL")
def _call(m: Machine, f: Frame, i: Instruction) -> None:
    args = popped(f, i.arg)
    names, f.keywords = f.keywords, ()
    second, first = f.stack.pop(), f.stack.pop()
    function = second
    if first is not NULL:
        function, args = first, [second, *args]
    kwargs = {}
    if names:
        kwargs = dict(zip(names, args[-len(names):]))
        args = args[:-len(names)]
    f.stack.append(m.call(function, args, kwargs))


@instruction("CALL_FUNCTION_EX")
def _call_function_ex(m: Machine, f: Frame, i: Instruction) -> None:
    kwargs = dict(m.mapping_items(f.stack.pop())) if i.arg & 1 else {}
    m.check_iterable(f.stack[-1])
    args = list(m.iterate(f.stack.pop()))
    if not all(type(name) is str for name in kwargs):
        raise Decline("the name of an argument is not a string")
    function = f.stack.pop()
    if f.stack and f.stack[-1] is NULL:
        f.stack.pop()
    f.stack.append(m.call(function, args, kwargs))


@instruction("MAKE_FUNCTION")
def _make_function(m: Machine, f: Frame, i: Instruction) -> None:
    code = f.stack.pop()
    closure = f.stack.pop() if i.arg & 8 else None
    annotations = f.stack.pop() if i.arg & 4 else ()
    keywords = f.stack.pop() if i.arg & 2 else None
    defaults = f.stack.pop() if i.arg & 1 else None
    made = types.FunctionType(code, f.globals, code.co_name, defaults, closure)
    made.__qualname__ = code.co_qualname
    made.__kwdefaults__ = keywords
    if annotations:
        made.__annotations__ = dict(zip(annotations[::2], annotations[1::2]))
    m.world.new(made.__dict__)
    f.stack.append(m.world.new(made))


@instruction("RETURN_VALUE")
def _return_value(m: Machine, f: Frame, i: Instruction) -> tuple:
    return returned(f.stack.pop())


@instruction("YIELD_VALUE")
def _yield_value(m: Machine, f: Frame, i: Instruction) -> tuple:
    return yielded(f.stack.pop())


@instruction("GET_YIELD_FROM_ITER")
def _get_yield_from_iter(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.iterator(f.stack.pop()))


@instruction("SEND")
def _send(m: Machine, f: Frame, i: Instruction) -> None:
    value, source = f.stack.pop(), f.stack[-1]
    try:
        if isinstance(source, Generator):
            f.stack.append(m.resume(source, value))
        elif value is None:
            f.stack.append(m.next_of(source))
        else:
            raise Decline("it sends a value to an iterator")
    except Raised as raised:
        if not isinstance(raised.error, StopIteration):
            raise
        f.stack.pop()
        f.stack.append(raised.error.value)
        f.index = i.target


# ---- exceptions and contexts ------------------------------------------------------------------------------------------


@instruction("RAISE_VARARGS")
def _raise_varargs(m: Machine, f: Frame, i: Instruction) -> None:
    cause = f.stack.pop() if i.arg == 2 else None
    if i.arg == 0:
        for frame in reversed(m.frames):
            if frame.caught and frame.caught[-1] is not None:
                raise Raised(frame.caught[-1])
        raise Raised(RuntimeError("No active exception to reraise"))
    error = f.stack.pop()
    if isinstance(error, type) and issubclass(error, BaseException):
        error = m.call(error, [], {})
    if not isinstance(error, BaseException) or (cause is not None and not isinstance(cause, BaseException)):
        raise Decline("it raises something that is not an exception")
    if not m.world.is_fresh(error):
        raise Decline("it raises an exception that was created outside")
    if i.arg == 2:
        error.__cause__ = cause
    raise Raised(error)


@instruction("LOAD_ASSERTION_ERROR")
def _load_assertion_error(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(AssertionError)


@instruction("PUSH_EXC_INFO")
def _push_exc_info(m: Machine, f: Frame, i: Instruction) -> None:
    error = f.stack.pop()
    f.stack.append(f.caught[-1] if f.caught else None)
    f.stack.append(error)
    f.caught.append(error)


@instruction("POP_EXCEPT")
def _pop_except(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.pop()
    if f.caught:
        f.caught.pop()


@instruction("CHECK_EXC_MATCH")
def _check_exc_match(m: Machine, f: Frame, i: Instruction) -> None:
    wanted, error = f.stack.pop(), f.stack[-1]
    listed = wanted if isinstance(wanted, tuple) else (wanted,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in listed):
        raise Decline("it catches something that is not an exception")
    f.stack.append(isinstance(error, wanted))


@instruction("RERAISE")
def _reraise(m: Machine, f: Frame, i: Instruction) -> None:
    raise Raised(f.stack.pop())


@instruction("BEFORE_WITH")
def _before_with(m: Machine, f: Frame, i: Instruction) -> None:
    manager = f.stack.pop()
    cls = type(manager)
    enter, leave = (m.world.class_attribute(cls, name) for name in ("__enter__", "__exit__"))
    if not isinstance(enter, types.FunctionType) or not isinstance(leave, types.FunctionType):
        raise Decline(f"it enters a {cls.__name__}")
    f.stack.append(types.MethodType(leave, manager))
    f.stack.append(m.call(enter, [manager], {}))


@instruction("WITH_EXCEPT_START")
def _with_except_start(m: Machine, f: Frame, i: Instruction) -> None:
    error, leave = f.stack[-1], f.stack[-4]
    trace = m.world.new(types.TracebackType(None, sys._getframe(), 0, f.line))  # it exists, and nothing reads its content
    f.stack.append(m.call(leave, [type(error), error, trace], {}))


# ---- match ------------------------------------------------------------------------------------------------------------


@instruction("GET_LEN")
def _get_len(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.length(f.stack[-1]))


_SEQUENCE, _MAPPING = 1 << 5, 1 << 6  # flags of classes; registering a class as an abstract one sets them


def _has_flag(m: Machine, value: Any, flag: int) -> bool:
    m.world.guards.registrations()
    return bool(m.call(type, [value], {}).__flags__ & flag)


@instruction("MATCH_SEQUENCE")
def _match_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack[-1]
    f.stack.append(_has_flag(m, value, _SEQUENCE))


@instruction("MATCH_MAPPING")
def _match_mapping(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack[-1]
    f.stack.append(_has_flag(m, value, _MAPPING))


@instruction("MATCH_KEYS")
def _match_keys(m: Machine, f: Frame, i: Instruction) -> None:
    keys, value = f.stack[-1], f.stack[-2]
    if not isinstance(value, dict) or m.world.has_python_method(type(value), "get"):
        raise Decline(f"it matches a {type(value).__name__}")
    found = [m.world.entry(value, key, "a dictionary") for key in keys]
    f.stack.append(None if any(item is ABSENT for item in found) else tuple(found))


@instruction("MATCH_CLASS")
def _match_class(m: Machine, f: Frame, i: Instruction) -> None:
    names, cls, value = f.stack.pop(), f.stack.pop(), f.stack.pop()
    if not isinstance(cls, type):
        raise Raised(TypeError("called match pattern must be a type"))
    if not m.call(isinstance, [value, cls], {}):
        f.stack.append(None)
        return
    if i.arg and cls in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple):
        first = [value]
    elif i.arg:
        positional = m.load_attribute(cls, "__match_args__")
        first = [m.find_attribute(value, name) for name in positional[:i.arg]]
    else:
        first = []
    found = [*first, *(m.find_attribute(value, name) for name in names)]
    f.stack.append(None if any(item is ABSENT for item in found) else tuple(found))
