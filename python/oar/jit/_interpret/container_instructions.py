"""Instructions that build containers and take them apart."""

from __future__ import annotations

from oar.jit._interpret.code import Instruction
from oar.jit._interpret.frame import Frame
from oar.jit._interpret.machine import Machine, instruction
from oar.jit._interpret.world import Decline, Raised

__all__ = ["popped"]

def popped(f: Frame, count: int) -> list:
    if not count:
        return []
    items = f.stack[-count:]
    del f.stack[-count:]
    return items


@instruction("BUILD_TUPLE")
def _build_tuple(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(tuple(popped(f, i.arg)))


@instruction("BUILD_LIST")
def _build_list(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(m.world.new(popped(f, i.arg)))


@instruction("BUILD_SET")
def _build_set(m: Machine, f: Frame, i: Instruction) -> None:
    items = popped(f, i.arg)
    for item in items:
        m.check_key(item)
    f.stack.append(m.world.new(set(items)))


@instruction("BUILD_MAP")
def _build_map(m: Machine, f: Frame, i: Instruction) -> None:
    items = popped(f, 2 * i.arg)
    for key in items[::2]:
        m.check_key(key)
    f.stack.append(m.world.new(dict(zip(items[::2], items[1::2]))))


@instruction("BUILD_CONST_KEY_MAP")
def _build_const_key_map(m: Machine, f: Frame, i: Instruction) -> None:
    keys = f.stack.pop()
    f.stack.append(m.world.new(dict(zip(keys, popped(f, i.arg)))))


@instruction("BUILD_STRING")
def _build_string(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append("".join(popped(f, i.arg)))


@instruction("BUILD_SLICE")
def _build_slice(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(slice(*popped(f, i.arg)))


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
    m.check_iterable(value)
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
    for key, item in m.mapping_items(value):
        if i.name == "DICT_MERGE" and key in into:
            raise Decline("an argument is passed twice")
        m.check_key(key)
        into[key] = item


@instruction("LIST_TO_TUPLE")
def _list_to_tuple(m: Machine, f: Frame, i: Instruction) -> None:
    f.stack.append(tuple(f.stack.pop()))


@instruction("UNPACK_SEQUENCE")
def _unpack_sequence(m: Machine, f: Frame, i: Instruction) -> None:
    items = []
    m.check_iterable(f.stack[-1])
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
    m.check_iterable(f.stack[-1])
    items = list(m.iterate(f.stack.pop()))
    if len(items) < before + after:
        raise Raised(ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(items)})"))
    middle = m.world.new(items[before:len(items) - after])
    f.stack.extend(reversed([*items[:before], middle, *items[len(items) - after:]]))
