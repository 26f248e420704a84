"""Python's own functions and types, as the interpreter does them."""

from __future__ import annotations

import collections
import functools
import itertools
import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.jit._interpret import substitutes
from oar.jit._interpret.calls import builtin
from oar.jit._interpret.machine import Machine
from oar.jit._interpret.world import ABSENT, IMMUTABLE, Decline, Raised

# ---- numbers and text -----------------------------------------------------------------------------------------


def _converted(m: Machine, kind: type, method: str, args: list, kwargs: dict) -> Any:
    if not args:
        return m.native(lambda: kind(**kwargs))
    value = args[0]
    for name in (method, "__index__"):
        if m.world.has_python_method(type(value), name):
            return m.call(m.world.class_attribute(type(value), name), [value], {})
    if isinstance(value, Tensor):
        return m.on_tensors(_cast(m, kind, value) or (lambda: kind(value)))
    return m.run_pure(kind, args, kwargs)


_DTYPES = {int: "int32", float: "float32", bool: "bool"}


def _cast(m: Machine, kind: type, value: Tensor) -> Any:
    """The conversion of a tensor of any shape where numbers stay tensors; None where they do not."""
    if not m.world.keeps_tensors or kind not in _DTYPES or not _C.is_symbolic(value):
        return None
    return lambda: _C.ops.cast(value, _DTYPES[kind])


@builtin(int)
def _int(m: Machine, args: list, kwargs: dict) -> Any:
    if args and type(args[0]) is _C.Dim and len(args) == 1:
        return args[0]
    size = m.known_size(args[0]) if len(args) == 1 else None
    if size is not None:
        return size
    return _converted(m, int, "__int__", args, kwargs)


@builtin(float)
def _float(m: Machine, args: list, kwargs: dict) -> Any:
    return _converted(m, float, "__float__", args, kwargs)


@builtin(complex)
def _complex(m: Machine, args: list, kwargs: dict) -> Any:
    return _converted(m, complex, "__complex__", args, kwargs)


@builtin(bool)
def _bool(m: Machine, args: list, kwargs: dict) -> Any:
    cast = _cast(m, bool, args[0]) if args and isinstance(args[0], Tensor) else None
    if cast is not None:
        return m.on_tensors(cast)
    return m.truth(args[0]) if args else False


@builtin(bytes)
def _bytes(m: Machine, args: list, kwargs: dict) -> Any:
    return m.run_pure(bytes, args, kwargs)


def _text(m: Machine, value: Any, method: str) -> str:
    cls = type(value)
    if isinstance(value, (Tensor, _C.Dim)):
        raise Decline("it shows the value of a tensor" if isinstance(value, Tensor) else "it shows an open size")
    for name in (method, "__repr__"):
        found = m.world.class_attribute(cls, name)
        if isinstance(found, types.FunctionType):
            return m.call(found, [value], {})
        if found is not object.__str__ and found is not ABSENT:
            break
    if isinstance(value, type):
        return repr(value)
    if isinstance(value, BaseException) and m.world.is_fresh(value):
        return str(value) if method == "__str__" else repr(value)
    settled = m.world.settled(value, "str", tensors=False)
    return m.native(lambda: str(settled) if method == "__str__" else repr(settled))


@builtin(str)
def _str(m: Machine, args: list, kwargs: dict) -> Any:
    if len(args) == 1 and not kwargs:
        return _text(m, args[0], "__str__")
    return m.run_pure(str, args, kwargs)


@builtin(repr)
def _repr(m: Machine, args: list, kwargs: dict) -> Any:
    return _text(m, args[0], "__repr__")


@builtin(format)
def _format(m: Machine, args: list, kwargs: dict) -> Any:
    value, spec = args[0], args[1] if len(args) > 1 else ""
    if m.world.has_python_method(type(value), "__format__"):
        return m.call(m.world.class_attribute(type(value), "__format__"), [value, spec], {})
    if not spec:
        return _text(m, value, "__str__")
    return m.run_pure(format, [value, spec], {})


# ---- containers -------------------------------------------------------------------------------------------------


@builtin(len)
def _len(m: Machine, args: list, kwargs: dict) -> Any:
    return m.length(args[0])


@builtin(list)
def _list(m: Machine, args: list, kwargs: dict) -> Any:
    return m.world.new(list(m.iterate(args[0])) if args else [])


@builtin(tuple)
def _tuple(m: Machine, args: list, kwargs: dict) -> Any:
    if args and type(args[0]) is tuple:
        return args[0]
    return tuple(m.iterate(args[0])) if args else ()


@builtin(set)
def _set(m: Machine, args: list, kwargs: dict) -> Any:
    items = list(m.iterate(args[0])) if args else []
    for item in items:
        m.check_key(item)
    return m.world.new(set(items))


@builtin(frozenset)
def _frozenset(m: Machine, args: list, kwargs: dict) -> Any:
    return frozenset(_set(m, args, kwargs))


@builtin(dict)
def _dict(m: Machine, args: list, kwargs: dict) -> Any:
    made: dict = {}
    if args:
        pairs = m.entries_of(args[0])
        for key, _ in pairs:
            m.check_key(key)
        made.update(pairs)
    made.update(kwargs)
    return m.world.new(made)


@builtin(collections.OrderedDict)
def _ordered(m: Machine, args: list, kwargs: dict) -> Any:
    return m.world.new(collections.OrderedDict(_dict(m, args, kwargs)))


@builtin(collections.deque)
def _deque(m: Machine, args: list, kwargs: dict) -> Any:
    items = list(m.iterate(args[0])) if args else []
    return m.world.new(collections.deque(items, *args[1:], **kwargs))


@builtin(collections.defaultdict)
def _defaultdict(m: Machine, args: list, kwargs: dict) -> Any:
    raise Decline("it creates a defaultdict")


@builtin(range)
def _range(m: Machine, args: list, kwargs: dict) -> Any:
    return m.range_of(args)


@builtin(slice)
def _slice(m: Machine, args: list, kwargs: dict) -> Any:
    return slice(*args)


@builtin(iter)
def _iter(m: Machine, args: list, kwargs: dict) -> Any:
    if len(args) != 1:
        raise Decline("it iterates until a value comes")
    return m.iterator(args[0])


@builtin(next)
def _next(m: Machine, args: list, kwargs: dict) -> Any:
    try:
        return m.next_of(args[0])
    except Raised as raised:
        if len(args) > 1 and isinstance(raised.error, StopIteration):
            return args[1]
        raise


def _substituted(function: Any) -> Any:
    return lambda m, args, kwargs: m.call(function, args, kwargs)


builtin(map)(_substituted(substitutes.mapped))
builtin(filter)(_substituted(substitutes.filtered))
builtin(functools.reduce)(_substituted(substitutes.reduced))
builtin(itertools.chain.from_iterable)(_substituted(substitutes.chained))
builtin(any)(_substituted(substitutes.any_true))
builtin(all)(_substituted(substitutes.all_true))


@builtin(sum)
def _sum(m: Machine, args: list, kwargs: dict) -> Any:
    items = list(m.iterate(args[0]))
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if all(type(v) in (int, bool) for v in [start, *items]) or (
            all(type(v) in IMMUTABLE for v in [start, *items])):
        return m.native(lambda: sum(items, start))  # floats are summed with compensation in later Pythons
    return m.call(substitutes.total, [m.world.new(items), start], {})


@builtin(sorted)
def _sorted(m: Machine, args: list, kwargs: dict) -> Any:
    return m.world.new(m._sorted(list(m.iterate(args[0])), kwargs))


def _extreme_of(function: Any, symbol: str) -> Any:
    def run(m: Machine, args: list, kwargs: dict) -> Any:
        if not args:
            return m.native(lambda: function(**kwargs))
        items = list(m.iterate(args[0])) if len(args) == 1 else args
        key = kwargs.get("key")
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            raise Raised(ValueError(f"{function.__name__}() arg is an empty sequence"))
        best, score = items[0], items[0] if key is None else m.call(key, [items[0]], {})
        for item in items[1:]:
            other = item if key is None else m.call(key, [item], {})
            if m.truth(m.compare(symbol, other, score)):
                best, score = item, other
        return best

    return run


builtin(min)(_extreme_of(min, "<"))
builtin(max)(_extreme_of(max, ">"))


@builtin(reversed)
def _reversed(m: Machine, args: list, kwargs: dict) -> Any:
    return m._reversed(args[0])


# ---- effects ------------------------------------------------------------------------------------------------------


def _as_it_is_now(m: Machine, tensor: Tensor) -> Tensor:
    """A tensor to show after the run, when the function may have written to it."""
    world = m.world
    if world.is_outside(tensor):
        raise Decline("it prints a tensor outside")
    told = any(id(tensor) in of_run for of_run in (world.inputs, world.numbers, world.origins, world.joined, world.asking))
    return tensor if told else m.on_tensors(lambda: _C.ops.assign(tensor))


@builtin(print)
def _print(m: Machine, args: list, kwargs: dict) -> Any:
    if "file" in kwargs and kwargs["file"] is not None or m.forked:
        raise Decline("it prints in a branch, or to a file")
    m.world.check_effect("it prints")
    shown = [_as_it_is_now(m, a) if isinstance(a, Tensor) else _text(m, a, "__str__") for a in args]
    options = {k: m.world.settled(v, "print", tensors=False) for k, v in kwargs.items()}
    m.world.pending.calls.append((print, tuple(shown), options))
