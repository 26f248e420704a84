"""How each instruction of Python 3.11 is done."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar._sizes import size_along
from oar.jit._interpret.code import Instruction
from oar.jit._interpret.frame import NULL, Frame
from oar.jit._interpret.machine import Machine, instruction, load_global
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
    if m.world.entry(f.globals, i.value, f"global {i.value}") is ABSENT:
        raise m.absent_name(i.value)
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
    if m.world.cell(f.cells[i.value], f"variable {i.value} of the enclosing function") is ABSENT:
        raise m.absent_name(i.value, local=i.value in f.code.cell_names)
    m.world.set_cell(f.cells[i.value], ABSENT)


@instruction("IMPORT_NAME")
def _import_name(m: Machine, f: Frame, i: Instruction) -> None:
    names, level = f.stack.pop(), f.stack.pop()
    if load_global(m, f, "__import__") is not builtins.__import__:
        raise Decline("it has its own import function")
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
    if i.value == "size" and isinstance(owner, Tensor):  # not the number of elements, which is what `x.size` reads
        f.stack.append(types.MethodType(size_along, owner))
        return
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
    f.stack.append(m.iterator_of_loop(f, f.stack.pop()))


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
