"""Python's own functions and types, as the interpreter does them."""

from __future__ import annotations

import abc
import collections
import functools
import inspect
import itertools
import types
from typing import Any

from oar import _C
from oar._C import Tensor
from oar.framework import unique_name
from oar.jit._interpret import asking, calls, substitutes
from oar.jit._interpret.attributes import has_python_method
from oar.jit._interpret.calls import builtin
from oar.jit._interpret.frame import Generator
from oar.jit._interpret.machine import Machine
from oar.jit._interpret.world import ABSENT, IMMUTABLE, Decline, Raised, Restart
from oar.optimizer.optimizer import Optimizer

# ---- objects ----------------------------------------------------------------------------------------------------


def _class_of(m: Machine, value: Any) -> type:
    if isinstance(value, Generator):
        raise Decline("it asks for the class of a generator")
    if m.world.is_input(value):
        return type(m.world.inputs[id(value)])
    cls = type(value)
    if cls is _C.Dim:
        return int  # an open size stands for a number
    if cls.__flags__ & (1 << 9) and not isinstance(value, Tensor):
        m.world.own_dict(value)
    return cls


@builtin(type)
def _type(m: Machine, args: list, kwargs: dict) -> Any:
    if len(args) != 1:
        raise Decline("it makes a class")
    return _class_of(m, args[0])


@builtin(isinstance)
def _isinstance(m: Machine, args: list, kwargs: dict) -> Any:
    value, wanted = args
    cls = _class_of(m, value)
    for one in _classes(wanted):
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
    m.world.guards.value(cls, "__mro__", cls.__mro__, f"the bases of {cls.__name__}")
    for one in _classes(wanted):
        if isinstance(_C.Guards.lookup(type(one), "__subclasscheck__"), types.FunctionType) and type(one) is not abc.ABCMeta:
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
        raise Raised(TypeError("attribute name must be string"))
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
        raise Decline("it asks for its variables")
    return m.load_attribute(args[0], "__dict__")


@builtin(id)
def _id(m: Machine, args: list, kwargs: dict) -> Any:
    if m.in_users_code() and (m.world.is_input(args[0]) or m.world.is_argument(args[0])):
        raise Decline("it asks for the identity of an argument")
    return id(args[0])


@builtin(hash)
def _hash(m: Machine, args: list, kwargs: dict) -> Any:
    if has_python_method(type(args[0]), "__hash__"):
        return m.call(m.world.class_attribute(type(args[0]), "__hash__"), args, {})
    m.check_key(args[0])
    return m.native(lambda: hash(args[0]))


@builtin(super)
def _super(m: Machine, args: list, kwargs: dict) -> Any:
    if not args:
        frame = m.frames[-1]
        cell = frame.cells.get("__class__")
        if cell is None:
            raise Raised(RuntimeError("super(): __class__ cell not found"))
        first = frame.code.local_names[0]
        owner = frame.locals.get(first, ABSENT)
        if owner is ABSENT:
            owner = m.world.cell(frame.cells[first], first)
        args = [m.world.cell(cell, "__class__"), owner]
    if len(args) != 2:
        raise Decline("it makes an unbound super()")
    return m.native(lambda: super(args[0], args[1]))


@builtin(object)
def _object(m: Machine, args: list, kwargs: dict) -> Any:
    return m.world.new(object())


# ---- numbers and text -----------------------------------------------------------------------------------------


def _converted(m: Machine, kind: type, method: str, args: list, kwargs: dict) -> Any:
    if not args:
        return m.native(lambda: kind(**kwargs))
    value = args[0]
    for name in (method, "__index__"):
        if has_python_method(type(value), name):
            return m.call(m.world.class_attribute(type(value), name), [value], {})
    if isinstance(value, Tensor):
        return m.on_tensors(lambda: kind(value))
    return m.run_pure(kind, args, kwargs)


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
    return m.truth(args[0]) if args else False


@builtin(bytes)
def _bytes(m: Machine, args: list, kwargs: dict) -> Any:
    return m.run_pure(bytes, args, kwargs)


def _text(m: Machine, value: Any, method: str) -> str:
    cls = type(value)
    if isinstance(value, (Tensor, _C.Dim)):
        raise Decline("it shows the value of a tensor" if isinstance(value, Tensor) else "it shows an open size")
    for name in (method, "__repr__"):
        found = m.world.class_attribute(cls, name) if cls.__flags__ & (1 << 9) else _C.Guards.lookup(cls, name)
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
    if has_python_method(type(value), "__format__"):
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
        from oar.jit._interpret.instructions import mapping_items

        if isinstance(args[0], dict) or _C.Guards.lookup(type(args[0]), "keys") is not ABSENT:
            pairs = mapping_items(m, args[0])
        else:
            pairs = [tuple(m.iterate(pair)) for pair in m.iterate(args[0])]
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
    raise Decline("it makes a defaultdict")


@builtin(range)
def _range(m: Machine, args: list, kwargs: dict) -> Any:
    return m.range_of(args)


@builtin(slice)
def _slice(m: Machine, args: list, kwargs: dict) -> Any:
    return slice(*args)


@builtin(iter)
def _iter(m: Machine, args: list, kwargs: dict) -> Any:
    if len(args) != 1:
        raise Decline("it goes on until a value comes")
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


def _extreme_of(symbol: str) -> Any:
    def run(m: Machine, args: list, kwargs: dict) -> Any:
        items = list(m.iterate(args[0])) if len(args) == 1 else args
        key = kwargs.get("key")
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            raise Raised(ValueError("arg is an empty sequence"))
        best, score = items[0], items[0] if key is None else m.call(key, [items[0]], {})
        for item in items[1:]:
            other = item if key is None else m.call(key, [item], {})
            if m.truth(m.compare(symbol, other, score)):
                best, score = item, other
        return best

    return run


builtin(min)(_extreme_of("<"))
builtin(max)(_extreme_of(">"))


@builtin(reversed)
def _reversed(m: Machine, args: list, kwargs: dict) -> Any:
    return m._reversed(args[0])


# ---- effects ------------------------------------------------------------------------------------------------------


@builtin(print)
def _print(m: Machine, args: list, kwargs: dict) -> Any:
    if "file" in kwargs and kwargs["file"] is not None or m.forked:
        raise Decline("it prints in a branch, or to a file")
    shown = [a if isinstance(a, Tensor) else _text(m, a, "__str__") for a in args]
    options = {k: m.world.settled(v, "print", tensors=False) for k, v in kwargs.items()}
    m.world.pending.calls.append((print, tuple(shown), options))


# ---- this package ------------------------------------------------------------------------------------------------


@builtin(_C.outside_capture)
def _outside_capture(m: Machine, args: list, kwargs: dict) -> Any:
    """Something that lasts is made now, for good; then the function is looked at anew."""
    if m.forked or m.raised:
        raise Decline("something that lasts is made where a tensor says so")
    held = [cell.cell_contents for cell in args[0].__closure__ or ()]
    if any(m.world.pending.touches(value) for value in held):
        raise Decline("it changes what something that lasts is made of")
    _C.outside_capture(args[0])
    raise Restart


@builtin(_C.make_tensor)
def _make_tensor(m: Machine, args: list, kwargs: dict) -> Any:
    what = "to_tensor"
    args = [m.world.settled(a, what) for a in args]
    # A copy of the constant: writes to it are the program's, and must not last.
    return m.on_tensors(lambda: _C.ops.assign(_C.make_tensor(*args, **kwargs)))


@builtin(_C.op)
def _op(m: Machine, args: list, kwargs: dict) -> Any:
    return m.run_pure(_C.op, args, kwargs)


@builtin(_C.call_key)
def _call_key(m: Machine, args: list, kwargs: dict) -> Any:
    raise Decline("it calls a captured function in an unusual way")


def _derivative_of(function: Any) -> Any:
    def run(m: Machine, args: list, kwargs: dict) -> Any:
        args = [m.world.settled(a, function.__name__) for a in args]
        kwargs = {k: m.world.settled(v, function.__name__) for k, v in kwargs.items()}
        asking.check(m.world, "it asks for gradients")
        return m.world.new_deep(m.on_tensors(lambda: function(*args, **kwargs)))

    return run


builtin(_C.backward)(_derivative_of(_C.backward))
builtin(_C.grad)(_derivative_of(_C.grad))


@builtin(inspect.isgeneratorfunction)
def _isgeneratorfunction(m: Machine, args: list, kwargs: dict) -> Any:
    function = args[0]
    if isinstance(function, types.FunctionType) and not m.world.is_fresh(function):
        m.world.guards.function(function)
    return inspect.isgeneratorfunction(function)


@builtin(functools.update_wrapper)
def _update_wrapper(m: Machine, args: list, kwargs: dict) -> Any:
    wrapper, wrapped = args[0], args[1]
    if not m.world.is_fresh(wrapper) or kwargs:
        raise Decline("it wraps a function that was made outside")
    for name in functools.WRAPPER_ASSIGNMENTS:
        found = m.find_attribute(wrapped, name)
        if found is not ABSENT:
            setattr(wrapper, name, found)
    wrapper.__wrapped__ = wrapped
    return wrapper


def _before_a_run(m: Machine, args: list, kwargs: dict) -> None:
    """The learning rate is a tensor that programs read: it is brought up to date before every run."""
    optimizer = args[0]
    rate = optimizer.__dict__["_learning_rate"]  # no guard: what it says is read before every run
    if m.world.pending.touches(optimizer) or m.was_acted_on(rate) or m.world.pending.touches(rate):
        raise Decline("it changes the learning rate before a step")
    refresh = types.MethodType(Optimizer._refresh_lr, optimizer)
    if refresh not in m.before:
        m.before.append(refresh)
        _C.outside_capture(refresh)


calls._FUNCTIONS[Optimizer._refresh_lr] = _before_a_run


def _generate_name(m: Machine, args: list, kwargs: dict) -> str:
    """A name for something that is made inside: the count goes on at every run, as it would without a program."""
    m.world.pending.calls.append((unique_name.generate, tuple(args), {}))
    return unique_name._current.peek(args[0], sum(c[0] is unique_name.generate for c in m.world.pending.calls) - 1)


calls._FUNCTIONS[unique_name.generate] = _generate_name
calls._FUNCTIONS[unique_name.same_names] = lambda m, args, kwargs: args[0]
