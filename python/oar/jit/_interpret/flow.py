"""The control flow of a code object: where branches join, which instructions form loops, what they assign."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from oar.jit._interpret.code import Code

__all__ = ["END", "assigned", "exits_of", "loop_around", "meeting_point", "only_raises", "reachable", "twin_test"]

END = -1  # the function returns

_STOPS = frozenset({"RETURN_VALUE", "RAISE_VARARGS", "RERAISE"})
_ALWAYS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
_ASSIGNING = frozenset({"STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF"})


def successors(code: Code, index: int) -> tuple[int, ...]:
    """The possible successors of the instruction. One that raises has none."""
    one = code.instructions[index]
    if one.name == "RETURN_VALUE":
        return (END,)
    if one.name in _STOPS:
        return ()
    if one.name in _ALWAYS:
        return (one.target,)
    return (index + 1,) if one.target < 0 else (index + 1, one.target)


def reachable(code: Code, starts: Iterable[int], stops: frozenset[int]) -> set[int]:
    """The instructions from these on, up to the stops, which are not among them."""
    found: set[int] = set()
    waiting = [s for s in starts if s not in stops and s != END]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += [s for s in successors(code, at) if s not in stops and s != END]
    return found


@functools.lru_cache(maxsize=1024)
def meeting_point(code: Code, starts: tuple[int, ...], stops: frozenset[int], returning: bool = True) -> int:
    """The first instruction that every way from here comes to (or a stop, or ``END``); those that raise aside.

    Without ``returning``, ways that return are left aside too.
    """
    inside = reachable(code, starts, stops)
    everything = inside | stops | {END}
    after: dict[int, set[int]] = {at: set(everything) for at in inside}
    for at in stops | {END}:
        after[at] = {at}
    changed = True
    while changed:
        changed = False
        for at in sorted(inside, reverse=True):
            ways = [after[s] for s in successors(code, at) if s in after and (returning or s != END)]
            new = ({at} | set.intersection(*ways)) if ways else set(everything)
            if new != after[at]:
                after[at], changed = new, True
    common = set.intersection(*(after[start] for start in starts))
    if len(starts) == 1:
        common.discard(starts[0])
    if not returning:
        common.discard(END)
        if common >= inside - {starts[0]}:
            return END  # all of them return
    # The nearest one comes before all others: they are after it too.
    for at in common:
        if common <= after[at]:
            return at
    return END


@functools.lru_cache(maxsize=1024)
def loop_around(code: Code, index: int) -> tuple[int, frozenset[int]] | None:
    """The innermost loop that an instruction is in: where it begins, and its instructions."""
    best: tuple[int, frozenset[int]] | None = None
    headers = {one.target for source, one in enumerate(code.instructions) if 0 <= one.target <= source}
    second = {code.instructions[_end_of(code, first)].target for h in headers for first in twin_test(code, h)}
    for source, one in enumerate(code.instructions):
        if 0 <= one.target <= source and one.target not in second:
            body = _body(code, one.target)
            if index in body and (best is None or len(body) < len(best[1])):
                best = one.target, body
    return best


def twin_test(code: Code, header: int) -> dict[int, int]:
    """The test at the end of a loop, if it is the same as at the beginning: Python compiles it twice."""
    found = {}
    for start, one in enumerate(code.instructions):
        size = one.target - header if one.name.startswith("POP_JUMP_BACKWARD") else 0
        first = start - size + 1
        if size > 1 and first > header + size:
            pairs = zip(code.instructions[header:header + size - 1], code.instructions[first:start])
            if all(a.name == b.name and a.value == b.value and a.arg == b.arg for a, b in pairs):
                found[first] = header
    return found


def _end_of(code: Code, test: int) -> int:
    """The jump that ends a test."""
    return next(i for i in range(test, len(code.instructions)) if code.instructions[i].name.startswith("POP_JUMP_BACKWARD"))


def only_raises(code: Code, start: int, ends: frozenset[int]) -> bool:
    """Whether every way from here ends in an exception."""
    if start in ends:
        return False
    inside = reachable(code, [start], ends)
    return not any(s == END or s in ends for at in inside for s in successors(code, at)) and any(
        code.instructions[at].name == "RAISE_VARARGS" for at in inside)


@functools.lru_cache(maxsize=1024)
def exits_of(code: Code, loop: tuple[int, frozenset[int]]) -> frozenset[int]:
    """Where a loop continues after an exit: one place if all exits lead there directly. Exits that raise are ignored.

    ``continue`` leads back to the test before the loop, which is then a part of it.
    """
    header, body = loop
    inside = set(body)
    while True:
        exits = {s for at in inside for s in successors(code, at) if s not in inside}
        before = [e for e in exits if 0 <= e < header]
        if not before:
            break
        inside |= set(range(min(before), header))
    exits = {e for e in exits if not only_raises(code, e, frozenset({header, *exits} - {e}))}
    only = _exit_of(code, exits)
    return frozenset(exits) if only is None else frozenset({only})


def _exit_of(code: Code, exits: set[int]) -> int | None:
    """The one place that all these lead to; None if there are several, or they return."""
    if len(exits) == 1:
        return next(iter(exits))
    ends = set()
    for e in exits:
        # Code that only leads out, such as the code before a break.
        while e != END and len(successors(code, e)) == 1 and code.instructions[e].name in _ALWAYS:
            e = successors(code, e)[0]
        ends.add(e)
    if len(ends) != 1:
        together = {meeting_point(code, (e,), frozenset()) if e not in ends_of(code, exits) else e for e in ends}
        ends = together if len(together) == 1 else ends
    only = next(iter(ends), END)
    return only if len(ends) == 1 and only != END else None


def ends_of(code: Code, exits: set[int]) -> set[int]:
    """Of these places, the last one in the code, to which the others lead."""
    return {max(exits)} if exits else set()


def _body(code: Code, header: int) -> frozenset[int]:
    """What can come back to the header without passing it: its natural loop."""
    sources = [i for i, one in enumerate(code.instructions) if one.target == header and i >= header]
    before: dict[int, list[int]] = {}
    for at in range(len(code.instructions)):
        for s in successors(code, at):
            before.setdefault(s, []).append(at)
    body, waiting = {header}, list(sources)
    while waiting:
        at = waiting.pop()
        if at not in body:
            body.add(at)
            waiting += before.get(at, [])
    return frozenset(body)


def assigned(code: Code, where: Iterable[int]) -> list[str]:
    """The variables that these instructions assign or delete."""
    return sorted({code.instructions[i].value for i in where if code.instructions[i].name in _ASSIGNING})
