"""What a pickle would build, found out without building it.

A pickle of a few hundred bytes can describe a tuple of 2 ** 100 elements, each level holding the one before it twice,
or lists nested a million deep. Python's own functions (a hash, a comparison) then run forever or overflow the stack.
Numbers whose hashes are equal are found in a dictionary by comparing one with all others, so a million of them as keys
take hours. So the opcodes are read first, and a pickle beyond the limits is rejected before anything is built.
"""

from __future__ import annotations

import pickletools
import struct
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, BinaryIO

__all__ = ["MOST_LEVELS", "LimitError", "check_hashes", "check_limits"]

MOST_LEVELS = 200
# Elements that a walk over the whole visits, counting an object that is held twice twice.
_MOST_ELEMENTS = 1_000_000
_MOST_ELEMENTS_PER_OPCODE = 16
_UNCOUNTED = 10**30  # sums stop here
# Keys and elements of sets. Text has another hash in each process; numbers have the same everywhere.
_MOST_OF_ONE_HASH = 1000
_MOST_KEYS_WITH_NUMBERS = 10_000


class LimitError(ValueError):
    """The pickle describes more than it may."""


_OPCODES = {op.code.encode("latin1"): op for op in pickletools.opcodes}
_EXTEND = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_STORE = {"PUT", "BINPUT", "LONG_BINPUT"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_LENGTH_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_MARK = object()
_COMPOUND = object()  # means the hash of a key that holds large numbers


class _Number(int):
    """The hash of a number that is large or a fraction. The hashes of small integers differ."""


def _number(name: str, argument: bytes) -> _Number | None:
    if name in ("BINFLOAT", "FLOAT"):
        fraction = struct.unpack(">d", argument)[0] if name == "BINFLOAT" else float(argument)
        return _Number(hash(fraction)) if fraction == fraction else None  # the hashes of NaNs differ
    value = int.from_bytes(argument, "little", signed=True) if name in ("LONG1", "LONG4") else int(argument.rstrip(b"L"))
    return _Number(hash(value)) if abs(value) >= 1 << 31 else None


_NUMBERS = {"BINFLOAT", "FLOAT", "LONG1", "LONG4", "LONG", "INT"}


def _refuse_hash(count: int) -> None:
    if count > _MOST_OF_ONE_HASH:
        raise LimitError(f"more than {_MOST_OF_ONE_HASH} numbers with the same hash are keys or elements of sets")


def check_hashes(values: Iterable[Hashable]) -> None:
    """An error if a set of these values would compare too many of them with each other."""
    _refuse_hash(max(Counter(map(hash, values)).values(), default=0))


class _Reader:
    """The opcodes of a file. Long texts and arrays are passed over."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise EOFError("the file ends early")
        return data

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError("a line of the file does not end")
        return line[:-1]

    def __iter__(self) -> Any:
        while True:
            code = self._read(1)
            op = _OPCODES.get(code)
            if op is None:
                raise ValueError(f"{code!r} is not an opcode of a pickle")
            yield op, self._argument(op.arg)
            if op.name == "STOP":
                return

    def _argument(self, kind: Any) -> bytes:
        if kind is None:
            return b""
        if kind.n >= 0:
            return self._read(kind.n)
        if kind.n == pickletools.UP_TO_NEWLINE:
            if kind.name == "stringnl_noescape_pair":
                self._line()
            return self._line()
        length = int.from_bytes(self._read(_LENGTH_BYTES[kind.n]), "little")
        if length < 1 << 12:
            return self._read(length)
        self._file.seek(length - 1, 1)
        self._read(1)  # it must be there
        return b""


class _Graph:
    """Which container holds which. A container is the list of those in it; anything else is None."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}  # by the container's id: elements that are not containers
        self.containers: list[list[Any]] = []  # keeps ids unique
        self.calls: list[list[Any]] = []  # the containers among them that functions build
        self.with_numbers: set[int] = set()  # ids of containers that hold large numbers, or what a function computed from them
        self.hashes: Counter[Any] = Counter()  # of keys
        self.opcodes = 0

    def run(self, file: BinaryIO) -> None:
        for op, argument in _Reader(file):
            self.opcodes += 1
            self._step(op, argument)

    def _pop_to_mark(self) -> list[Any]:
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items

    def _fill(self, container: Any, items: list[Any]) -> None:
        if container is None:
            raise ValueError("elements are added to something that is not a container")
        container.extend(item for item in items if isinstance(item, list))
        self.sizes[id(container)] = self.sizes.get(id(container), 0) + len(items)

    def _has_numbers(self, item: Any) -> bool:
        return isinstance(item, _Number) or id(item) in self.with_numbers

    def _count_keys(self, keys: list[Any]) -> None:
        for key in keys:
            if self._has_numbers(key):
                self.hashes[key if isinstance(key, _Number) else _COMPOUND] += 1
                if isinstance(key, _Number):
                    _refuse_hash(self.hashes[key])
        if self.hashes[_COMPOUND] > _MOST_KEYS_WITH_NUMBERS:
            raise LimitError(f"more than {_MOST_KEYS_WITH_NUMBERS} tuples of large numbers are keys or elements of sets")

    def _step(self, op: Any, argument: bytes) -> None:
        stack, name = self.stack, op.name
        if name == "MARK":
            stack.append(_MARK)
        elif name in _STORE:
            place = int(argument) if name == "PUT" else int.from_bytes(argument, "little")
            if place > self.opcodes:  # the unpickler makes room for all places before it
                raise LimitError(f"it stores an object at place {place}, after {self.opcodes} opcodes")
            self.memo[place] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in _FETCH:
            stack.append(self.memo[int(argument) if name == "GET" else int.from_bytes(argument, "little")])
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            self._pop_to_mark()
        elif name in _EXTEND:
            items = self._pop_to_mark() if name in ("APPENDS", "SETITEMS", "ADDITEMS") else [stack.pop()]
            if name == "SETITEM":
                items.append(stack.pop())
            if name in ("SETITEM", "SETITEMS"):
                self._count_keys(items[1::2])  # the last ones come first
            elif name == "ADDITEMS":
                self._count_keys(items)
            self._fill(stack[-1], items)
        elif name in _NUMBERS:
            stack.append(_number(name, argument))
        else:
            self._make(op)

    def _make(self, op: Any) -> None:
        before = [kind.name for kind in op.stack_before]
        items = []
        container = "mark" in before or op.name in ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET")
        if "mark" in before:
            items = self._pop_to_mark()
            before = before[: before.index("mark")]
        items += [self.stack.pop() for _ in before]
        if not op.stack_after:
            return
        if not items and not container:
            self.stack.append(None)
            return
        made: list[Any] = []
        self.containers.append(made)
        if op.name == "DICT":
            self._count_keys(items[1::2])
        elif op.name == "FROZENSET":
            self._count_keys(items)
        if op.name == "REDUCE":
            self.calls.append(made)
        if op.name in ("FROZENSET", "REDUCE") or any(map(self._has_numbers, items)):
            self.with_numbers.add(id(made))
        self._fill(made, items)
        self.stack.append(made)

    def measure(self) -> tuple[int, int]:
        """Levels of the deepest container; elements of the largest, or of all that functions walk over."""
        levels: dict[int, int] = {}
        elements: dict[int, int] = {}
        for container in self.containers:
            self._measure(container, levels, elements)
        walked = sum(elements[id(call)] for call in self.calls)
        return max(levels.values(), default=0), min(max([walked, *elements.values()]), _UNCOUNTED)

    def _measure(self, root: list[Any], levels: dict[int, int], elements: dict[int, int]) -> None:
        open_ids: set[int] = set()
        walk = [root]
        while walk:
            top = walk[-1]
            key = id(top)
            if key in levels:
                walk.pop()
            elif key not in open_ids:
                open_ids.add(key)
                for part in top:
                    if id(part) in open_ids:
                        raise LimitError("a container holds itself")
                    if id(part) not in levels:
                        walk.append(part)
            else:
                levels[key] = 1 + max((levels[id(part)] for part in top), default=0)
                met = self.sizes.get(key, 0) + sum(elements[id(part)] for part in top)
                elements[key] = min(met, _UNCOUNTED)
                open_ids.discard(key)
                walk.pop()


def check_limits(file: BinaryIO) -> None:
    """An error if the pickle at the current position of a seekable file exceeds the limits. The position does not change."""
    start = file.tell()
    try:
        graph = _Graph()
        graph.run(file)
        levels, elements = graph.measure()
    finally:
        file.seek(start)
    if levels > MOST_LEVELS:
        raise LimitError(f"its containers are nested {levels} deep; {MOST_LEVELS} is the limit")
    most = _MOST_ELEMENTS + _MOST_ELEMENTS_PER_OPCODE * graph.opcodes
    if elements > most:
        count = str(elements) if elements < _UNCOUNTED else "more than 10**30"
        raise LimitError(
            f"a walk over its containers, which hold each other, visits {count} elements; {most} is the limit"
        )
