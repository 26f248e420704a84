"""Captured functions never give a stale result: functions and methods that are replaced or wrapped."""

import functools
import sys
import types

from eager_twin import Box, side_by_side

import oar
from oar import nn
from oar.nn import functional as F

def helper(t):
    return t * 2


# functions that are replaced ---------------------------------------------------------------------


@side_by_side
def test_a_global_function_is_replaced(static, x, patch):
    f = static(lambda t: helper(t) + 1)
    yield f(x())
    yield f(x())
    patch.setattr(sys.modules[__name__], "helper", lambda t: t - 5)
    yield f(x())
    patch.undo()
    yield f(x())


@side_by_side
def test_the_code_of_a_function_is_replaced(static, x):
    def inner(t):
        return t * 2

    def other(t):
        return t - 7

    f = static(lambda t: inner(t))
    g = static(inner)
    yield f(x()), g(x())
    inner.__code__ = other.__code__
    yield f(x()), g(x())


@side_by_side
def test_methods_are_replaced(static, x):
    class Scaler:
        def scale(self, t):
            return t * 2

        @staticmethod
        def shift(t):
            return t + 1

        @classmethod
        def named(cls, t):
            return t * len(cls.__name__)

    c = Scaler()
    f = static(lambda t: c.scale(t) + c.shift(t) + Scaler.named(t))
    yield f(x())
    Scaler.scale = lambda self, t: t * 3
    yield f(x())
    c.scale = lambda t: t * 4
    yield f(x())
    Scaler.shift = staticmethod(lambda t: t - 9)
    yield f(x())
    Scaler.__name__ = "Longer"
    yield f(x())
    c.scale = types.MethodType(lambda self, t: t * 5, c)
    yield f(x())


@side_by_side
def test_functions_of_the_library_are_replaced(static, x, patch):
    f = static(lambda t: oar.tanh(t) + F.relu(t) + nn.functional.sigmoid(t))
    yield f(x())
    patch.setattr(oar, "tanh", lambda t: t * 10)
    yield f(x())
    patch.setattr(F, "relu", lambda t: t - 3)
    yield f(x())


@side_by_side
def test_methods_of_tensors_are_replaced(static, x, patch):
    f = static(lambda t: t.tanh() + t.halved() if hasattr(t, "halved") else t.tanh())
    yield f(x())
    patch.setattr(oar.Tensor, "halved", lambda t: t / 2, raising=False)
    yield f(x())
    patch.setattr(oar.Tensor, "tanh", lambda t: t * 100)
    yield f(x())


@side_by_side
def test_the_forward_of_a_class_is_replaced(static, x):
    class Net(nn.Layer):
        def forward(self, t):
            return t * 2

    net, outer = Net(), nn.Sequential(Net(), Net())
    f = static(lambda t: net(t) + outer(t))
    yield f(x())
    net.forward = lambda t: t - 1
    yield f(x())
    Net.forward = lambda self, t: t * 5
    yield f(x())
    del net.forward
    yield f(x())


@side_by_side
def test_functions_in_containers(static, x):
    table = {"double": lambda t: t * 2, "shift": lambda t: t + 1}
    order, stages = ["double"], [helper]
    f = static(lambda t: functools.reduce(lambda v, n: table[n](v), order, t) + sum(stage(t) for stage in stages))
    yield f(x())
    order.append("shift")
    yield f(x())
    table["double"] = lambda t: t * 20
    yield f(x())
    stages[0] = lambda t: t - 4
    yield f(x())


@side_by_side
def test_functools(static, x):
    c = Box(s=1.0)

    def scale(t, by, plus=0.0):
        return t * by + plus + c.s

    part = functools.partial(scale, by=2.0)
    method = functools.partialmethod

    class Thing:
        def scale(self, t, by):
            return t * by

        triple = method(scale, by=3.0)

    thing = Thing()
    f = static(lambda t: part(t) + thing.triple(t))
    yield f(x())
    c.s = 2.0
    yield f(x())
    part = functools.partial(scale, by=3.0)
    yield f(x())
    part.keywords["plus"] = 4.0
    yield f(x())
    g = static(functools.partial(scale, by=5.0))
    yield g(x())


@side_by_side
def test_lru_cache(static, x):
    calls, c = [], Box(s=1.0)

    @functools.lru_cache(maxsize=None)
    def cached(n):
        calls.append(n)
        return n * c.s

    f = static(lambda t, n: t * cached(n))
    yield f(x(), 2), calls
    c.s = 5.0
    yield f(x(), 2), calls
    yield f(x(), 3), calls
    cached.cache_clear()
    yield f(x(), 2), calls, cached.cache_info().hits


@side_by_side
def test_singledispatch(static, x):
    @functools.singledispatch
    def act(value, t):
        return t

    @act.register(int)
    def _(value, t):
        return t * value

    f = static(lambda t, v: act(v, t))
    yield f(x(), 2), f(x(), 2.0)

    @act.register(float)
    def _(value, t):
        return t - value

    yield f(x(), 2), f(x(), 2.0)


@side_by_side
def test_decorators(static, x):
    seen, c = [], Box(s=1.0)

    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            seen.append(function.__name__)
            return function(*args, **kwargs) * c.s

        return wrapper

    @logged
    def inner(t):
        return t + 1

    @static
    @logged
    def outer(t):
        return inner(t) * 2

    for c.s in (1.0, 1.0, 2.0):
        yield outer(x()), seen
    f = static(lambda t: inner.__wrapped__(t))
    yield f(x())
    inner.__wrapped__ = lambda t: t - 8
    yield f(x())


@side_by_side
def test_recursion(static, x):
    c = Box(depth=2)

    def power(t, n):
        return t if n == 0 else power(t, n - 1) * t + c.depth

    f = static(lambda t: power(t, c.depth))
    for c.depth in (2, 2, 3, 0):
        yield f(x())

    @static
    def itself(t, n):
        return t if n == 0 else itself(t * 2, n - 1) + 1

    yield itself(x(), 3), itself(x(), 0), itself(x(), 3), itself(x(), 2)
