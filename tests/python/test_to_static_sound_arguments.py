"""Captured functions never give a stale result: identity, numbers and arguments."""

import collections
import copy
import math

import numpy as np
from eager_twin import Box, raised, side_by_side

import oar


# identity, numbers, arguments --------------------------------------------------------------------


@side_by_side
def test_identity(static, x):
    a = b = Box(s=1.0)
    f = static(lambda t: (t * 2 if a is b else t - 1, a is not b, id(a) == id(b)))
    yield f(x())
    b = Box(s=1.0)
    yield f(x())
    b = a
    yield f(x())
    p = q = oar.ones([3])
    g = static(lambda t: t * 2 if p is q else t - p)
    yield g(x())
    q = oar.ones([3])
    yield g(x())
    h = static(lambda t, u: t + u if t is u else t - u)
    same, other = x(), x()
    yield h(same, other), h(same, same), h(same, other), h(other, other)


NUMBERS = [0, 0.0, -0.0, False, True, 1, 1.0, 2, 2.0, 1 + 0j, float("nan"), float("inf"), -1, 2**70, -(2**65), 1e-300,
           np.float32(1.0), np.float64(1.0), np.int64(1), np.int32(1), np.bool_(True), np.float32(0.0)]


@side_by_side
def test_numbers_as_arguments(static, x):
    @static
    def f(t, n):
        real = abs(n) if isinstance(n, complex) else n
        sign = math.copysign(1.0, real)
        small = real if abs(real) < 1e9 else 1
        item = [1, 2, 3][n] if type(n) is int and -3 <= n < 3 else None
        return t * sign, type(n), n, t + small, t * 1.5 if n == 1 else t, item

    for _ in range(2):
        for n in NUMBERS:
            yield f(x(), n)


@side_by_side
def test_numbers_outside(static, x):
    n = 0
    f = static(lambda t: (t * math.copysign(1.0, n), n, isinstance(n, bool), t + n, t / 2 if n else t))
    for _ in range(2):
        for n in [v for v in NUMBERS if not isinstance(v, complex) and abs(v) < 2**60 or v != v]:
            yield f(x())


@side_by_side
def test_numbers_in_containers(static, x):
    held, f = [0.0], None
    f = static(lambda t: (t * math.copysign(1.0, held[0]), type(held[0]), held))
    for held[0] in (0.0, -0.0, False, 0, True, 1, 1.0):
        yield f(x())
    g = static(lambda table, key: (table[key] * 2, list(table)))
    for table in ({1: x()}, {True: x()}, {1.0: x()}, {1: x()}):
        yield g(table, 1), g(table, True)
    for table in ({0.0: x()}, {-0.0: x()}, {"a": x(), "b": x()}, {"b": x(), "a": x()}):
        yield static(lambda table: [(k, v + 1) for k, v in table.items()])(table)


@side_by_side
def test_structures_as_arguments(static, x):
    f = static(lambda items, scale=1.0: [type(items).__name__, [v * scale for v in items], len(items)])
    for make in (list, tuple, list, collections.deque, lambda v: {i: t for i, t in enumerate(v)}.values()):
        yield f(make([x(), x()])), f(make([x()])), f(make([x(), x(), x()]), scale=2.0)
    g = static(lambda table: {k: v * 2 for k, v in table.items()})
    yield g({"a": x()}), g({"a": x(), "b": x()}), g({"b": x(), "a": x()}), g(collections.OrderedDict(a=x()))


@side_by_side
def test_strings_bytes_and_others_as_arguments(static, x):
    @static
    def f(t, how):
        if how == "twice":
            return t * 2
        if isinstance(how, bytes):
            return t + len(how)
        return t - 1, how

    others = (None, ..., slice(1, 2), range(3), frozenset("a"), oar.float32, int)
    for how in ("twice", "once", "twice", b"ab", b"abc", *others):
        yield f(x(), how), f(x(), how)


@side_by_side
def test_objects_as_arguments_are_changed_between_calls(static, x):
    f = static(lambda t, c: t * c.s + (c.extra if hasattr(c, "extra") else 0.0) + len(c.items))
    c, d = Box(s=1.0, items=[]), Box(s=1.0, items=[1])
    yield f(x(), c), f(x(), c), f(x(), d)
    c.s = 2.0
    yield f(x(), c), f(x(), d)
    c.items.append(0)
    yield f(x(), c)
    d.extra = 4.0
    yield f(x(), d), f(x(), copy.deepcopy(d)), f(x(), Box(s=9.0, items=[]))


@side_by_side
def test_a_subclass_of_int(static, x):
    class Count(int):
        unit = "a"

    n = Count(2)
    f = static(lambda t, m: (t * n + m, n.unit, type(m), m))
    yield f(x(), 2), f(x(), Count(2)), f(x(), True)
    n = 2 * Count(3)
    yield raised(f, x(), 2)
    n = Count(5)
    n.unit = "b"
    yield f(x(), 2)


@side_by_side
def test_numpy_arrays_as_arguments(static, x):
    f = static(lambda t, a: (t + oar.to_tensor(a), list(a.shape)))
    base = np.ones(3, "float32")
    yield f(x(), base), f(x(), base)
    base[0] = 5.0
    yield f(x(), base), f(x(), base.astype("float64")), f(x(), np.ones([2, 1], "float32"))


@side_by_side
def test_tensors_of_other_dtypes_and_ranks(static, x):
    f = static(lambda t: (t * 2, t.dtype == oar.float32, t.ndim, str(t.dtype)))
    for dtype in ("float32", "float64", "int64", "int32", "float32"):
        yield f(x(dtype=dtype)), f(x(4, dtype=dtype)), f(x(1, 2, 3, dtype=dtype))


@side_by_side
def test_one_tensor_as_two_arguments(static, x):
    @static
    def f(a, b):
        return a * b + a

    one, two = x(), x()
    yield f(one, two), f(one, one), f(two, one)


# signatures --------------------------------------------------------------------------------------


@side_by_side
def test_every_kind_of_argument(static, x):
    @static
    def f(a, /, b, *rest, key=1.0, **more):
        return a * b + sum(rest) * key, len(rest), sorted(more), [v * 2 for v in more.values()]

    yield f(x(), 2.0), f(x(), b=3.0), f(x(), 2.0, x(), x()), f(x(), 2.0, key=4.0), f(x(), 2.0, z=x(), y=1.0)
    yield raised(f, x()), raised(f, a=x(), b=1.0), f(x(), 2.0, a=x())


@side_by_side
def test_defaults_that_change(static, x):
    def f(t, s=1.0, *, k=2.0):
        return t * s + k

    g = static(lambda t: f(t))
    h = static(f)
    yield g(x()), h(x())
    f.__defaults__ = (3.0,)
    yield g(x()), h(x())
    f.__kwdefaults__["k"] = 5.0
    yield g(x()), h(x())
    f.__kwdefaults__ = {"k": 7.0}
    yield g(x()), h(x())
    f.__defaults__ = None
    yield raised(g, x(), message=False), raised(h, x(), message=False)


@side_by_side
def test_a_default_that_collects(static, x):
    @static
    def f(t, seen=[]):  # noqa: B006 - the point of the test
        seen.append(1)
        return t * len(seen)

    def helper(t, seen={}):  # noqa: B006
        seen[len(seen)] = 1
        return t + len(seen)

    g = static(lambda t: helper(t))
    for _ in range(4):
        yield f(x()), g(x())
