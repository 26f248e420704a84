"""Captured functions never give a stale result: attributes, read in every way that Python has.

See eager_twin.py for how a scenario runs. The siblings of this file are named by subject.
"""

import functools
import operator

from eager_twin import Box, side_by_side


SCALE = 1.0
TABLE = {"scale": 1.0}


# attributes --------------------------------------------------------------------------------------


@side_by_side
def test_an_attribute_in_a_comprehension(static, x):
    c = Box(s=1.0)
    f = static(lambda t: [t * c.s for _ in range(2)])
    for c.s in (1.0, 1.0, 2.0, 1.0):
        yield f(x())


@side_by_side
def test_an_attribute_in_every_kind_of_comprehension(static, x):
    c = Box(s=1.0, keep=True)

    @static
    def f(t):
        table = {k: t * c.s for k in ("a", "b") if c.keep}
        numbers = {c.s * k for k in range(3)}
        total = sum(t * c.s * k for k in range(2))
        return table, numbers, total, [[c.s for _ in range(2)] for _ in range(2)]

    for c.s, c.keep in ((1.0, True), (1.0, True), (2.0, True), (2.0, False), (1.0, True)):
        yield f(x())


@side_by_side
def test_an_attribute_of_the_result_of_a_helper(static, x):
    c = Box(inner=Box(s=1.0))

    def helper():
        return c.inner

    f = static(lambda t: t * helper().s)
    for s in (1.0, 1.0, 2.0, 3.0):
        c.inner.s = s
        yield f(x())
    c.inner = Box(s=7.0)
    yield f(x())


@side_by_side
def test_an_alias(static, x):
    c = Box(inner=Box(s=1.0))

    @static
    def f(t):
        d = c.inner
        e = [d][0]
        return t * e.s

    for s in (1.0, 1.0, 2.0):
        c.inner.s = s
        yield f(x())
    c.inner = Box(s=7.0)
    yield f(x())


@side_by_side
def test_getattr_hasattr_and_vars(static, x):
    c = Box(s=1.0)

    @static
    def f(t):
        got = getattr(c, "s"), getattr(c, "absent", 5.0), vars(c)["s"], c.__dict__.get("other", 0.0)
        return t * got[0] + got[1] + got[2] + got[3], hasattr(c, "absent"), sorted(vars(c))

    for s in (1.0, 1.0, 2.0):
        c.s = s
        yield f(x())
    c.absent = 2.0
    yield f(x())
    c.other = 3.0
    yield f(x())
    del c.absent
    yield f(x())


@side_by_side
def test_names_of_attributes_that_are_computed(static, x):
    c = Box(a=1.0, b=2.0, which="a")
    f = static(lambda t: t * getattr(c, c.which) + operator.attrgetter(c.which)(c))
    for c.which, c.a in (("a", 1.0), ("a", 1.0), ("b", 1.0), ("a", 3.0), ("b", 3.0)):
        yield f(x())


@side_by_side
def test_a_class_attribute_that_the_instance_shadows(static, x):
    class Config:
        s = 1.0

    c = Config()
    f = static(lambda t: t * c.s)
    yield f(x())
    yield f(x())
    c.s = 2.0
    yield f(x())
    del c.s
    yield f(x())
    Config.s = 3.0
    yield f(x())


@side_by_side
def test_a_class_attribute_of_a_base(static, x):
    class Base:
        s = 1.0

    class Middle(Base):
        pass

    class Config(Middle):
        pass

    c = Config()
    f = static(lambda t: t * c.s + Config.s)
    yield f(x())
    Base.s = 2.0
    yield f(x())
    Middle.s = 3.0
    yield f(x())
    Config.s = 4.0
    yield f(x())
    del Config.s, Middle.s
    yield f(x())


@side_by_side
def test_slots(static, x):
    class Point:
        __slots__ = ("s", "other")

    class Deeper(Point):
        __slots__ = ("z",)

    p, q = Point(), Deeper()
    p.s = q.s = q.z = 1.0
    f = static(lambda t: t * p.s + q.s * q.z + (p.other if hasattr(p, "other") else 0.0))
    for p.s, q.s, q.z in ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (2.0, 3.0, 1.0), (2.0, 3.0, 4.0)):
        yield f(x())
    p.other = 10.0
    yield f(x())


@side_by_side
def test_a_property(static, x):
    class Config:
        raw = 1.0

        @property
        def s(self):
            return self.raw * 2

    c = Config()
    f = static(lambda t: t * c.s)
    for c.raw in (1.0, 1.0, 2.0):
        yield f(x())
    Config.s = property(lambda self: self.raw * 10)
    yield f(x())


@side_by_side
def test_a_cached_property(static, x):
    class Config:
        raw = 1.0

        @functools.cached_property
        def s(self):
            return self.raw * 2

    c = Config()
    f = static(lambda t: t * c.s)
    yield f(x())
    c.raw = 2.0
    yield f(x())
    del c.s
    yield f(x())
    c.s = 9.0
    yield f(x()), c


@side_by_side
def test_getattr_and_getattribute_of_a_class(static, x):
    class Lazy:
        def __init__(self):
            self.table = {"s": 1.0}

        def __getattr__(self, name):
            if name in self.table:
                return self.table[name]
            raise AttributeError(name)

    class Counting:
        def __init__(self):
            object.__setattr__(self, "reads", 0)
            object.__setattr__(self, "s", 1.0)

        def __getattribute__(self, name):
            if name == "s":
                object.__setattr__(self, "reads", object.__getattribute__(self, "reads") + 1)
            return object.__getattribute__(self, name)

    lazy, counting = Lazy(), Counting()
    f = static(lambda t: t * lazy.s + counting.s + getattr(lazy, "absent", 0.0))
    for s in (1.0, 1.0, 2.0):
        lazy.table["s"] = s
        yield f(x()), counting.reads
    lazy.s = 5.0
    yield f(x()), counting.reads
    lazy.table["absent"] = 6.0
    yield f(x()), counting.reads
    counting.s = 3.0
    yield f(x()), counting.reads


@side_by_side
def test_descriptors(static, x):
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner):
            return self if instance is None else getattr(instance, self.name, 1.0) * self.factor

        def __set__(self, instance, value):
            setattr(instance, self.name, value)

    class Config:
        s = Scaled(2.0)

    c = Config()
    f = static(lambda t: t * c.s)
    yield f(x())
    c.s = 3.0
    yield f(x())
    Config.s.factor = 5.0
    yield f(x())
    c.__dict__["s"] = 100.0  # a data descriptor takes precedence
    yield f(x())


@side_by_side
def test_attributes_of_a_metaclass(static, x):
    class Meta(type):
        s = 1.0

        @property
        def twice(cls):
            return cls.base * 2

        def __len__(cls):
            return cls.size

    class Config(metaclass=Meta):
        base, size = 1.0, 2

    f = static(lambda t: t * Config.s + Config.twice + len(Config))
    yield f(x())
    Meta.s = 2.0
    yield f(x())
    Config.base = 3.0
    yield f(x())
    Config.size = 7
    yield f(x())


@side_by_side
def test_the_class_of_an_object_is_replaced(static, x):
    class A:
        s = 1.0

        def scale(self, t):
            return t * self.s

    class B:
        s = 2.0

        def scale(self, t):
            return t - self.s

    c = A()
    f = static(lambda t: (c.scale(t), type(c).__name__, isinstance(c, B)))
    for c.__class__ in (A, A, B, A):
        yield f(x())


@side_by_side
def test_an_attribute_is_deleted(static, x):
    c = Box(s=1.0)

    @static
    def f(t):
        try:
            return t * c.s
        except AttributeError:
            return t - 1

    yield f(x())
    yield f(x())
    del c.s
    yield f(x())
    c.s = 3.0
    yield f(x())


@side_by_side
def test_the_dictionary_of_an_object_is_replaced(static, x):
    c = Box(s=1.0)
    f = static(lambda t: t * c.s)
    for s in (1.0, 1.0, 2.0):
        c.__dict__ = {"s": s}
        yield f(x())
