"""Captured functions have the effects of eager mode: when objects are freed, and as late as iterators are asked.

See eager_twin.py for how a scenario runs.
"""

import itertools
import weakref

import oar
from eager_twin import Box, raised, side_by_side


@side_by_side
def test_objects_that_say_when_they_are_freed(static, x):
    log = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            log.append(self.name)

    @static
    def f(t):
        held = Noted("held")
        Noted("dropped")
        made = t * 2
        del held
        log.append("end")
        return made

    for _ in range(3):
        yield f(x()), list(log)


@side_by_side
def test_weak_references_to_what_is_made_inside(static, x):
    @static
    def f(t):
        held = Box(s=2.0)
        ref = weakref.ref(held)
        before = ref() is held
        del held
        return t * 2, before, ref() is None

    for _ in range(2):
        yield f(x())


@side_by_side
def test_weak_dictionaries(static, x):
    held = Box(s=1.0)
    table = weakref.WeakValueDictionary(a=held)
    f = static(lambda t: t * table["a"].s if "a" in table else t - 1)
    yield f(x())
    held.s = 3.0
    yield f(x())
    del held
    yield f(x())


@side_by_side
def test_generators_that_are_left_in_the_middle(static, x):
    log = []

    def numbers():
        try:
            yield 1.0
            yield 2.0
        finally:
            log.append("closed")

    @static
    def f(t):
        for value in numbers():
            t = t * value
            break
        log.append("after")
        return t

    g = static(lambda t: t * next(numbers()))
    for _ in range(3):
        yield f(x()), g(x()), list(log)


@side_by_side
def test_a_mode_that_a_generator_sets_and_leaves(static, x):
    def without_gradients():
        with oar.no_grad():
            yield 2.0
            yield 3.0

    @static
    def f(t):
        for value in without_gradients():
            t = t + value
            break
        return t * 2, oar.is_grad_enabled()

    for _ in range(3):
        yield f(x())


def natural():
    n = 0
    while True:
        yield n
        n += 1


@side_by_side
def test_iterators_over_generators_without_an_end(static, x):
    @static
    def f(t):
        for n, s in zip(natural(), [1.0, 2.0, 3.0]):
            t = t * s + n
        for s, n in zip([1.0, 2.0], natural()):
            t = t * s + n
        for i, n in enumerate(natural(), 2):
            if i > 4:
                break
            t = t + n * i
        for n in itertools.chain([5], natural()):
            t = t + n
            if n == 3:
                break
        return t, list(itertools.islice(natural(), 2, 9, 3)), list(itertools.islice(natural(), 3))

    yield f(x())
    yield f(x())


@side_by_side
def test_generators_are_asked_as_late_as_in_eager_mode(static, x):
    log = []

    def noted(name, count):
        for i in range(count):
            log.append((name, i))
            yield float(i)

    @static
    def f(t):
        for a, b in zip(noted("a", 3), noted("b", 2)):
            log.append("body")
            t = t + a * b
        for i, a in enumerate(noted("c", 2)):
            log.append(i)
            t = t + a
        first = next(itertools.chain(noted("d", 2), noted("e", 2)))
        some = list(itertools.islice(noted("f", 9), 2))
        return t + first, some, list(itertools.product(noted("g", 2), "ab"))

    for _ in range(2):
        yield f(x()), list(log)


@side_by_side
def test_a_generator_that_raises_stop_iteration(static, x):
    def broken():
        yield 1.0
        raise StopIteration

    f = static(lambda t: t * sum(broken()))
    yield raised(f, x())
    yield raised(f, x())


@side_by_side
def test_tensors_are_printed_as_they_are_then(static, x):
    outside = oar.zeros([2])

    @static
    def f(t):
        made = t * 2
        print(made, t)
        made.add_(oar.ones([2, 3]))
        print(made)
        return made

    @static
    def g(t):
        print(outside)
        outside.add_(oar.ones([2]))
        print(outside)
        return t * 1

    for fill in (1.0, 2.0, 2.0):
        yield f(x(fill=fill, grad=False)), g(x())
