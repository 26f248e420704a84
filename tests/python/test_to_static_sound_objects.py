"""Captured functions never give a stale result: objects with behaviour, and classes."""

import contextlib
import contextvars
import copy
import threading
import weakref

from eager_twin import Box, raised, side_by_side

# objects with behaviour --------------------------------------------------------------------------


class Thing:
    """Every way in which Python asks an object something, answered from one attribute."""

    def __init__(self, n=1):
        self.n, self.log = n, []

    def __call__(self, t):
        return t * self.n

    def __len__(self):
        return self.n

    def __bool__(self):
        return self.n > 1

    def __eq__(self, other):
        return self.n == (other.n if isinstance(other, Thing) else other)

    def __hash__(self):
        return hash(self.n)

    def __contains__(self, item):
        return item <= self.n

    def __iter__(self):
        return iter(range(self.n))

    def __getitem__(self, key):
        return self.n * key

    def __lt__(self, other):
        return self.n < other.n

    def __add__(self, other):
        return other + self.n

    def __mul__(self, other):
        return other * self.n

    def __rmul__(self, other):
        return other * self.n

    def __float__(self):
        return float(self.n)

    def __index__(self):
        return self.n

    def __str__(self):
        return "n" * self.n

    def __format__(self, spec):
        return f"{self.n}{spec}"

    def __enter__(self):
        self.log.append("in")
        return self.n

    def __exit__(self, *error):
        self.log.append("out")
        return self.n > 2


WAYS = {
    "call": lambda c, t: c(t),
    "len": lambda c, t: t * len(c),
    "bool": lambda c, t: t * 2 if c else t,
    "not": lambda c, t: t * 2 if not c else t,
    "and": lambda c, t: (c and t * 2, c or t * 3)[1] if c else t,
    "eq": lambda c, t: t * 2 if c == 2 else t,
    "eq of two": lambda c, t: t * 2 if c == Thing(2) else t,
    "hash": lambda c, t: t * hash(c),
    "key": lambda c, t: t * {Thing(1): 5.0, Thing(2): 7.0}.get(c, 11.0),
    "contains": lambda c, t: t * 2 if 2 in c else t,
    "iter": lambda c, t: [t * k for k in c],
    "unpack": lambda c, t: [*c],
    "getitem": lambda c, t: t * c[3],
    "sorted": lambda c, t: t * sorted([Thing(2), c])[0].n,
    "max": lambda c, t: t * max([Thing(2), c], key=lambda k: k.n).n,
    "add": lambda c, t: c + t,
    "mul": lambda c, t: c * 2.0 * t,
    "rmul": lambda c, t: 2.0 * c * t,
    "float": lambda c, t: t * float(c),
    "index": lambda c, t: t * [10.0, 20.0, 30.0, 40.0][c],
    "index of a tensor": lambda c, t: t.flatten()[c],
    "str": lambda c, t: t * len(str(c)),
    "format": lambda c, t: (f"{c:x}", t * int(f"{c}")),
    "isinstance": lambda c, t: t * (isinstance(c, Thing) + callable(c)),
    "any and all": lambda c, t: t * (any([c, 0]) + 2 * all([c, 1])),
    "sum": lambda c, t: t * sum(c),
    "copy": lambda c, t: t * copy.copy(c).n,
    "list": lambda c, t: (list(c), tuple(c), set(c)),
}


def _one_way(way):
    @side_by_side
    def scenario(static, x):
        c = Thing()
        f = static(lambda t: way(c, t))
        for c.n in (1, 1, 2, 3, 1):
            yield f(x())
        c = Thing(2)
        yield f(x())

    return scenario


for _name, _way in WAYS.items():
    globals()["test_an_object_with_" + _name.replace(" ", "_")] = _one_way(_way)


@side_by_side
def test_with_statements(static, x):
    c = Thing()

    @static
    def f(t):
        with c as n:
            t = t * n
        with contextlib.suppress(KeyError):
            t = t + {1: 2.0}[c.n]
        return t

    for c.n in (1, 1, 2, 1):
        yield f(x()), c.log

    @static
    def swallowed(t):
        with c:
            raise ValueError("inside")
        return t * 3

    for c.n in (1, 3, 1, 3):
        yield raised(swallowed, x()), c.log


@side_by_side
def test_super_and_inheritance(static, x):
    class Base:
        s = 1.0

        def act(self, t):
            return t * self.s

    class Left(Base):
        def act(self, t):
            return super().act(t) + 1

    class Right(Base):
        def act(self, t):
            return super().act(t) * 3

    class Both(Left, Right):
        pass

    c = Both()
    f = static(lambda t: c.act(t))
    yield f(x())
    c.s = 2.0
    yield f(x())
    Base.act = lambda self, t: t - self.s
    yield f(x())
    Both.__bases__ = (Right, Left)
    yield f(x())


@side_by_side
def test_classes_and_functions_made_inside(static, x):
    c = Box(s=1.0)

    @static
    def f(t):
        class Local:
            scale = c.s

            def __init__(self, v):
                self.v = v

            def act(self):
                return self.v * self.scale

        def twice(g):
            return lambda v: g(g(v))

        return twice(lambda v: v + c.s)(Local(t).act())

    for c.s in (1.0, 1.0, 2.0):
        yield f(x())


@side_by_side
def test_weak_references(static, x):
    target = Box(s=1.0)
    ref, table = weakref.ref(target), weakref.WeakValueDictionary(a=target)

    @static
    def f(t):
        found = ref()
        return t * found.s + len(table) if found is not None else t - 1

    yield f(x())
    target.s = 2.0
    yield f(x())
    del target
    yield f(x())


@side_by_side
def test_context_variables_and_thread_locals(static, x):
    variable, local = contextvars.ContextVar("s", default=1.0), threading.local()
    local.s = 1.0
    f = static(lambda t: t * variable.get() + local.s + getattr(local, "other", 0.0))
    yield f(x())
    token = variable.set(2.0)
    yield f(x())
    local.s = 3.0
    yield f(x())
    variable.reset(token)
    yield f(x()), contextvars.copy_context().run(lambda: variable.set(9.0) and f(x()))
    local.other = 4.0
    found, t = [], x()

    def work():
        local.s = 50.0
        found.append(f(t))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    yield found, f(x())
