"""Captured functions never give a stale result: classes, what is an instance of them, what Python asks of them.

See eager_twin.py for how a scenario runs.
"""

import abc
import array
import collections
import collections.abc
import functools
import operator
import types

import numpy as np

from eager_twin import Box, side_by_side


@side_by_side
def test_the_bases_of_a_class_are_replaced(static, x):
    class First:
        s = 1.0

    class Second:
        s = 2.0

    class Made(First):
        pass

    made = Made()
    f = static(lambda t: t * 2 if isinstance(made, First) else t * 3)
    g = static(lambda t: t * Made.mro()[1].s if issubclass(Made, (First, Second)) else t)
    for Made.__bases__ in ((First,), (Second,), (First,)):
        yield f(x()), g(x())


@side_by_side
def test_a_class_is_registered_as_an_abstract_one(static, x):
    class Shape(abc.ABC):
        pass

    class Made:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return [3.0, 4.0][i]

    made = Made()
    f = static(lambda t: t * 2 if isinstance(made, Shape) else t * 3)
    g = static(lambda t: t * 2 if issubclass(Made, Shape) else t * 3)

    @static
    def h(t):
        match made:
            case [first, second]:
                return t * first + second
        return t * 5

    yield f(x()), g(x()), h(x())
    Shape.register(Made)
    yield f(x()), g(x()), h(x())
    collections.abc.Sequence.register(Made)
    yield f(x()), g(x()), h(x())


@side_by_side
def test_objects_that_see_who_looks_at_them(static, x):
    log, c = [], Box(kind=int)

    class Noting:
        s = 2.0

        def __getattribute__(self, name):
            log.append(name)
            return object.__getattribute__(self, name)

    class Pretending:
        @property
        def __class__(self):
            return c.kind

    noting, pretending = Noting(), Pretending()
    f = static(lambda t: t * noting.s)
    g = static(lambda t: t * 2 if isinstance(pretending, int) else t * 3)
    h = static(lambda t: t * Noting().s)
    for c.kind in (int, str, int):
        yield f(x()), g(x()), h(x()), list(log)


@side_by_side
def test_the_methods_of_a_descriptor_are_replaced(static, x):
    class Scaled:
        def __get__(self, owner, cls=None):
            return 2.0

    class Made:
        s = Scaled()

    made = Made()
    made.__dict__["s"] = 7.0
    f = static(lambda t: t * made.s + Made.s)
    yield f(x())
    Scaled.__get__ = lambda self, owner, cls=None: 3.0
    yield f(x())
    Scaled.__set__ = lambda self, owner, value: None
    yield f(x())
    del Scaled.__set__
    yield f(x())


@side_by_side
def test_methods_that_a_class_gets_later(static, x):
    class Made:
        s = 1.0

        def __str__(self):
            return f"made {self.s}"

        def __add__(self, other):
            return other + self.s

    class Sub(Made):
        pass

    made, sub = Made(), Sub()
    f = static(lambda t: (t * 1, f"{made}", list(reversed([1, 2])), made + t, 1 + sub if hasattr(Sub, "__radd__") else 0))
    yield f(x())
    Made.__format__ = lambda self, spec: "formatted"
    yield f(x())
    Sub.__radd__ = lambda self, other: 9
    yield f(x())


@side_by_side
def test_values_in_objects_of_python(static, x):
    numbers, s = [1.0, 2.0], 1.0
    part, cut = functools.partial(max, numbers, key=None), slice(numbers, None)

    def reads():
        return s

    f = static(lambda t: t * part.args[0][0] + cut.start[1] + len(part.keywords))
    g = static(lambda t: t * reads.__closure__[0].cell_contents)

    @static
    def h(t):
        part.args[0].append(3.0)
        operator.getitem([numbers], 0).append(4.0)
        (numbers,).__getitem__(0).append(5.0)
        return t * 1

    for _ in range(2):
        yield f(x()), g(x()), h(x()), numbers
    numbers[0], s = 5.0, 4.0
    part.keywords["default"] = 0
    yield f(x()), g(x()), h(x()), numbers


@side_by_side
def test_equal_values_that_are_not_one_object(static, x):
    def new(value):
        return type(value)(str(value)) if not isinstance(value, (str, tuple)) else value[:1] + value[1:]

    for value in (1000, 1.5, "a text", (1, 2.5)):
        c = Box(a=value, b=value)
        f = static(lambda t: t * 2 if c.a is c.b else t * 3)  # noqa: B023
        g = static(lambda t, a, b: t * 2 if a is b else t * 3)
        yield f(x()), g(x(), value, value)
        c.b = new(value)
        yield f(x()), g(x(), value, c.b), id(c.a) == id(c.b)


@side_by_side
def test_arrays_of_objects(static, x):
    held = Box(s=1.0)
    numbers, objects = np.array([1.5, 2.5], dtype=object), np.array([held, None], dtype=object)
    f, g = static(lambda t: t * numbers[0]), static(lambda t: t * objects[0].s)
    for text in ("1.5", "2.5", "3.5", "1.25", "7.5", "1.5"):
        numbers[0] = float(text)
        held.s = numbers[0] + 1
        yield f(x()), g(x())


@side_by_side
def test_patterns_for_sequences_and_mappings(static, x):
    c = Box(given=None)

    @static
    def f(t):
        match c.given:
            case {"k": s, **rest}:
                return t * s + len(rest)
            case [_, *rest]:
                return t * 2 + len(rest)
        return t * 5

    for c.given in (
        collections.deque([1.0, 2.0]), array.array("d", [1.0, 2.0]), collections.UserList([1.0]), memoryview(b"ab"), "ab", b"ab",
        range(2), collections.UserDict(k=2.0), types.MappingProxyType({"k": 3.0}), collections.ChainMap({"k": 4.0}),
        collections.defaultdict(float), collections.OrderedDict(k=5.0, j=1.0), {"k": 6.0}, None,
    ):
        yield f(x())


@side_by_side
def test_open_sizes_meet_numbers_that_are_no_integers(static, x):
    functions = [
        static(lambda t: t * 2 if t.shape[0] == 5.0 else t),
        static(lambda t: t * 2 if t.shape[0] != 5.0 else t),
        static(lambda t: t * 2 if 4.5 < t.shape[0] < 5.5 else t),
        static(lambda t: t * 2 if t.shape[0] == 5 + 0j else t),
    ]
    for rows in (4, 6, 5, 7, 5):
        yield [f(x(rows, 3)) for f in functions]


@side_by_side
def test_open_sizes_are_put_into_texts(static, x):
    functions = [
        static(lambda t: ("%s" % t.shape, t * 1)),
        static(lambda t: ("%s rows, %s" % (t.shape[0], t.dtype), t * 1)),
        static(lambda t: ("%d" % t.shape[0], t * 1)),
    ]
    for rows in (4, 5, 6, 7, 5):
        yield [f(x(rows, 3)) for f in functions]
