"""Code objects in a form that the interpreter can run: decoded instructions, handlers of exceptions, lines."""

from __future__ import annotations

import dis
import functools
import sys
import types
from typing import Any, NamedTuple

__all__ = ["SUPPORTED", "Code", "Instruction", "decoded"]

# Bytecode differs between versions of Python. On others, functions are not captured but run in segments.
SUPPORTED = sys.version_info[:2] == (3, 11) and sys.implementation.name == "cpython"

_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "RESUME", "PRECALL", "NOP", "MAKE_CELL", "COPY_FREE_VARS"})


class Instruction(NamedTuple):
    """One instruction. ``target`` is the index that it may jump to."""

    name: str
    arg: int
    value: Any
    target: int
    line: int


class Handler(NamedTuple):
    """Where an exception from instructions ``start`` to ``end`` is handled."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


class Code:
    """A decoded code object."""

    def __init__(self, code: types.CodeType) -> None:
        self.raw = code
        listed = list(dis.get_instructions(code))
        places: dict[int, int] = {}  # by offset in bytes: the index of the first instruction kept at or after it
        kept = [i for i in listed if i.opname not in _SKIPPED]
        at = len(kept)
        for i in reversed(listed):
            if i.opname not in _SKIPPED:
                at -= 1
            places[i.offset] = at
        end = len(code.co_code)
        places[end] = len(kept)
        self.instructions: list[Instruction] = []
        line = code.co_firstlineno
        for i in kept:
            line = (i.positions and i.positions.lineno) or line
            jumps = i.opcode in dis.hasjrel or i.opcode in dis.hasjabs
            target = places[i.argval] if jumps else -1
            self.instructions.append(Instruction(i.opname, i.arg or 0, i.argval, target, line))
        self.handlers = [
            Handler(places[e.start], places[e.end], places[e.target], e.depth, e.lasti)
            for e in dis._parse_exception_table(code)  # type: ignore[attr-defined]
        ]
        self.is_generator = any(i.opname == "RETURN_GENERATOR" for i in listed)
        self.local_names = code.co_varnames
        self.cell_names = code.co_cellvars
        self.free_names = code.co_freevars

    def handler_of(self, index: int) -> Handler | None:
        for handler in self.handlers:
            if handler.start <= index < handler.end:
                return handler
        return None


@functools.lru_cache(maxsize=4096)
def decoded(code: types.CodeType) -> Code:
    """The decoded form, kept."""
    return Code(code)
