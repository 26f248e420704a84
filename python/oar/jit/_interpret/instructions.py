"""How each instruction of Python 3.11 is done."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret.code import Instruction
from oar.jit._interpret.frame import NULL, Frame, Generator
from oar.jit._interpret.machine import Machine, instruction, load_global, returned, yielded
from oar.jit._interpret.world import ABSENT, Decline, Raised

# ---- the stack ------------------------------------------------------------------------------------------------


@instruction("POP_TOP")
def _pop_top(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.pop()


@instruction("PUSH_NULL")
def _push_null(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(NULL)


@instruction("COPY")
def _copy(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(f.stack[-i.arg])


@instruction("SWAP")
def _swap(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]


@instruction("LOAD_CONST")
def _load_const(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(i.value)


# ---- variables ------------------------------------------------------------------------------------------------


@instruction("LOAD_FAST")
def _load_fast(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.locals.get(i.value, ABSENT)
    if value is ABSENT:
        raise m.absent_name(i.value, local=True)
    m.check_known(value)
    f.stack.append(value)


@instruction("STORE_FAST")
def _store_fast(m: Machine, f: Frame, i: Instruction) -> None:
    f.locals[i.value] = f.stack.pop()


@instruction("DELETE_FAST")
def _delete_fast(m: Machine, f: Frame, i: Instruction) -> None:
    if f.locals.pop(i.value, ABSENT) is ABSENT:
        raise m.absent_name(i.value, local=True)


@instruction("LOAD_GLOBAL")
def _load_global(m: Machine, f: Frame, i: Instruction) -> None:
    if i.arg & 1:
        f.stack.append(NULL)
    f.stack.append(load_global(m, f, i.value))


@instruction("STORE_GLOBAL")
def _store_global(m: Machine, f: Frame, i: Instruction) -> None:
    m.world.set_entry(f.globals, i.value, f.stack.pop())


@instruction("DELETE_GLOBAL")
def _delete_global(m: Machine, f: Frame, i: Instruction) -> None:
    m.world.delete_entry(f.globals, i.value)


@instruction("LOAD_CLOSURE")
def _load_closure(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(f.cells[i.value])


@instruction("LOAD_DEREF")
def _load_deref(m: Machine, f: Frame, i: Instruction) -> None:
    value = m.world.cell(f.cells[i.value], f"variable {i.value} of the enclosing function")
    if value is ABSENT:
        raise m.absent_name(i.value)
    m.check_known(value)
    f.stack.append(value)


@instruction("STORE_DEREF")
def _store_deref(m: Machine, f: Frame, i: Instruction) -> None:
    m.world.set_cell(f.cells[i.value], f.stack.pop())


@instruction("DELETE_DEREF")
def _delete_deref(m: Machine, f: Frame, i: Instruction) -> None:
    m.world.set_cell(f.cells[i.value], ABSENT)


@instruction("IMPORT_NAME")
def _import_name(m: Machine, f: Frame, i: Instruction) -> None:
    names, level = f.stack.pop(), f.stack.pop()
    if load_global(m, f, "__import__") is not builtins.__import__:
        raise Decline("it imports in a way of its own")
    full = i.value
    if level:
        package = m.world.entry(f.globals, "__package__", "__package__")
        if not isinstance(package, str):
            raise Decline(f"it imports {i.value}")
        base = package.rsplit(".", level - 1)[0] if level > 1 else package
        full = f"{base}.{i.value}" if i.value else base
    module = m.world.entry(sys.modules, full, f"module {full}")
    if module is ABSENT or module is None:
        raise Decline(f"it imports {full} for the first time")
    if names:
        for name in names:
            if name == "*":
                raise Decline("it imports everything of a module")
        f.stack.append(module)
    else:
        f.stack.append(m.world.entry(sys.modules, full.partition(".")[0], f"module {full}") if not level else module)


@instruction("IMPORT_FROM")
def _import_from(m: Machine, f: Frame, i: Instruction) -> None:
    module = f.stack[-1]
    found = m.find_attribute(module, i.value)
    if found is ABSENT:
        found = m.world.entry(sys.modules, f"{module.__name__}.{i.value}", f"module {i.value}")
        if found is ABSENT:
            raise Decline(f"it imports {i.value}")
    f.stack.append(found)


# ---- attributes and items ---------------------------------------------------------------------------------------


@instruction("LOAD_ATTR")
def _load_attr(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.load_attribute(f.stack.pop(), i.value))


@instruction("LOAD_METHOD")
def _load_method(m: Machine, f: Frame, i: Instruction) -> None:
    owner = f.stack.pop()
    f.stack.append(NULL)
    f.stack.append(m.load_attribute(owner, i.value))


@instruction("STORE_ATTR")
def _store_attr(m: Machine, f: Frame, i: Instruction) -> None:
    owner, value = f.stack.pop(), f.stack.pop()
    m.store_attribute(owner, i.value, value)


@instruction("DELETE_ATTR")
def _delete_attr(m: Machine, f: Frame, i: Instruction) -> None:
    m.store_attribute(f.stack.pop(), i.value, ABSENT)


@instruction("BINARY_SUBSCR")
def _binary_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    key, owner = f.stack.pop(), f.stack.pop()
    f.stack.append(m.subscript(owner, key))


@instruction("STORE_SUBSCR")
def _store_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    key, owner, value = f.stack.pop(), f.stack.pop(), f.stack.pop()
    m.store_subscript(owner, key, value)


@instruction("DELETE_SUBSCR")
def _delete_subscr(m: Machine, f: Frame, i: Instruction) -> None:
    key, owner = f.stack.pop(), f.stack.pop()
    m.delete_subscript(owner, key)


# ---- operators --------------------------------------------------------------------------------------------------


@instruction("BINARY_OP")
def _binary_op(m: Machine, f: Frame, i: Instruction) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    symbol = _OPERATORS[i.arg]
    if symbol.endswith("="):
        f.stack.append(m.inplace(symbol[:-1], a, b))
    else:
        f.stack.append(m.binary(symbol, a, b))


_OPERATORS = ["+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"]
_OPERATORS += [f"{symbol}=" for symbol in _OPERATORS]


@instruction("UNARY_POSITIVE", "UNARY_NEGATIVE", "UNARY_INVERT")
def _unary(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.unary(i.name, f.stack.pop()))


@instruction("UNARY_NOT")
def _unary_not(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.negation(f.stack.pop()))


@instruction("COMPARE_OP")
def _compare_op(m: Machine, f: Frame, i: Instruction) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    f.stack.append(m.compare(i.value, a, b))


@instruction("IS_OP")
def _is_op(m: Machine, f: Frame, i: Instruction) -> None:
    b, a = f.stack.pop(), f.stack.pop()
    f.stack.append(m.same_object(a, b) != bool(i.arg))


@instruction("CONTAINS_OP")
def _contains_op(m: Machine, f: Frame, i: Instruction) -> None:
    container, item = f.stack.pop(), f.stack.pop()
    f.stack.append(m.contains(container, item) != bool(i.arg))


# ---- containers ---------------------------------------------------------------------------------------------------


def _popped(f: Frame, count: int) -> list:
    if not count:
        return []
    items = f.stack[-count:]
    del f.stack[-count:]
    return items


@instruction("BUILD_TUPLE")
def _build_tuple(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(tuple(_popped(f, i.arg)))


@instruction("BUILD_LIST")
def _build_list(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.world.new(_popped(f, i.arg)))


@instruction("BUILD_SET")
def _build_set(m: Machine, f: Frame, i: Instruction) -> None:
    items = _popped(f, i.arg)
    for item in items:
        m.check_key(item)
    f.stack.append(m.world.new(set(items)))


@instruction("BUILD_MAP")
def _build_map(m: Machine, f: Frame, i: Instruction) -> None:
    items = _popped(f, 2 * i.arg)
    for key in items[::2]:
        m.check_key(key)
    f.stack.append(m.world.new(dict(zip(items[::2], items[1::2]))))


@instruction("BUILD_CONST_KEY_MAP")
def _build_const_key_map(m: Machine, f: Frame, i: Instruction) -> None:
    keys = f.stack.pop()
    f.stack.append(m.world.new(dict(zip(keys, _popped(f, i.arg)))))


@instruction("BUILD_STRING")
def _build_string(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append("".join(_popped(f, i.arg)))


@instruction("BUILD_SLICE")
def _build_slice(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(slice(*_popped(f, i.arg)))


@instruction("FORMAT_VALUE")
def _format_value(m: Machine, f: Frame, i: Instruction) -> None:
    spec = f.stack.pop() if i.arg & 4 else ""
    value = f.stack.pop()
    how = i.arg & 3
    if how:
        value = m.call((None, str, repr, ascii)[how], [value], {})
    f.stack.append(m.call(format, [value, spec], {}))


@instruction("LIST_APPEND")
def _list_append(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack.pop()
    f.stack[-i.arg].append(value)


@instruction("SET_ADD")
def _set_add(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack.pop()
    m.check_key(value)
    f.stack[-i.arg].add(value)


@instruction("MAP_ADD")
def _map_add(m: Machine, f: Frame, i: Instruction) -> None:
    value, key = f.stack.pop(), f.stack.pop()
    m.check_key(key)
    f.stack[-i.arg][key] = value


@instruction("LIST_EXTEND")
def _list_extend(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack.pop()
    f.stack[-i.arg].extend(m.iterate(value))


@instruction("SET_UPDATE")
def _set_update(m: Machine, f: Frame, i: Instruction) -> None:
    items = list(m.iterate(f.stack.pop()))
    for item in items:
        m.check_key(item)
    f.stack[-i.arg].update(items)


@instruction("DICT_UPDATE", "DICT_MERGE")
def _dict_update(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack.pop()
    into = f.stack[-i.arg]
    for key, item in mapping_items(m, value):
        if i.name == "DICT_MERGE" and key in into:
            raise Decline("an argument is given twice")
        m.check_key(key)
        into[key] = item


def mapping_items(m: Machine, value: Any) -> list[tuple[Any, Any]]:
    """The entries of a dictionary, or of an object with ``keys()``."""
    if isinstance(value, dict) and not isinstance(_C.Guards.lookup(type(value), "keys"), types.FunctionType):
        return list(m.world.content(value).items())
    keys = m.call(m.load_attribute(value, "keys"), [], {})
    return [(key, m.subscript(value, key)) for key in m.iterate(keys)]


@instruction("LIST_TO_TUPLE")
def _list_to_tuple(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(tuple(f.stack.pop()))


@instruction("UNPACK_SEQUENCE")
def _unpack_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    items = []
    for item in m.iterate(f.stack.pop()):
        items.append(item)
        if len(items) > i.arg:
            raise Raised(ValueError(f"too many values to unpack (expected {i.arg})"))
    if len(items) < i.arg:
        raise Raised(ValueError(f"not enough values to unpack (expected {i.arg}, got {len(items)})"))
    f.stack.extend(reversed(items))


@instruction("UNPACK_EX")
def _unpack_ex(m: Machine, f: Frame, i: Instruction) -> None:
    before, after = i.arg & 0xFF, i.arg >> 8
    items = list(m.iterate(f.stack.pop()))
    if len(items) < before + after:
        raise Raised(ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(items)})"))
    middle = m.world.new(items[before:len(items) - after])
    f.stack.extend(reversed([*items[:before], middle, *items[len(items) - after:]]))


# ---- jumps --------------------------------------------------------------------------------------------------------


@instruction("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(m: Machine, f: Frame, i: Instruction) -> None:
    f.index = i.target


@instruction("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _jump_if_true(m: Machine, f: Frame, i: Instruction) -> Any:
    return m.jump_if(f, i, f.stack.pop(), True)


@instruction("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _jump_if_false(m: Machine, f: Frame, i: Instruction) -> Any:
    return m.jump_if(f, i, f.stack.pop(), False)


@instruction("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _jump_if_none(m: Machine, f: Frame, i: Instruction) -> None:
    if f.stack.pop() is None:
        f.index = i.target


@instruction("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_not_none(m: Machine, f: Frame, i: Instruction) -> None:
    if f.stack.pop() is not None:
        f.index = i.target


@instruction("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(m: Machine, f: Frame, i: Instruction) -> Any:
    value = f.stack[-1]
    wanted = i.name == "JUMP_IF_TRUE_OR_POP"
    if isinstance(value, Tensor) and _C.is_symbolic(value):
        return m.fork_or_pop(f, i, value, wanted)
    if m.truth(value) == wanted:
        f.index = i.target
    else:
        f.stack.pop()
    return None


@instruction("GET_ITER")
def _get_iter(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.iterator(f.stack.pop()))


@instruction("FOR_ITER")
def _for_iter(m: Machine, f: Frame, i: Instruction) -> Any:
    if type(f.stack[-1]).__name__ == "RangeIterator":
        return m.next_in_range(f, i, f.stack[-1])
    try:
        f.stack.append(m.next_of(f.stack[-1]))
    except Raised as raised:
        if not isinstance(raised.error, StopIteration):
            raise
        f.stack.pop()
        f.index = i.target
    return None


# ---- functions ------------------------------------------------------------------------------------------------------


@instruction("KW_NAMES")
def _kw_names(m: Machine, f: Frame, i: Instruction) -> None:
    f.keywords = f.code.raw.co_consts[i.arg]


@instruction("CALL")
def _call(m: Machine, f: Frame, i: Instruction) -> None:
    args = _popped(f, i.arg)
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
    kwargs = dict(mapping_items(m, f.stack.pop())) if i.arg & 1 else {}
    args = list(m.iterate(f.stack.pop()))
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
        raise Decline("it raises something that is no exception")
    if not m.world.is_fresh(error):
        raise Decline("it raises an exception that was made outside")
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
        raise Decline("it catches something that is no exception")
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
    f.stack.append(m.call(leave, [type(error), error, None], {}))


# ---- match ------------------------------------------------------------------------------------------------------------


@instruction("GET_LEN")
def _get_len(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.length(f.stack[-1]))


@instruction("MATCH_SEQUENCE")
def _match_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack[-1]
    m.call(type, [value], {})
    f.stack.append(isinstance(value, (list, tuple, range)))


@instruction("MATCH_MAPPING")
def _match_mapping(m: Machine, f: Frame, i: Instruction) -> None:
    value = f.stack[-1]
    m.call(type, [value], {})
    f.stack.append(isinstance(value, dict))


@instruction("MATCH_KEYS")
def _match_keys(m: Machine, f: Frame, i: Instruction) -> None:
    keys, value = f.stack[-1], f.stack[-2]
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
