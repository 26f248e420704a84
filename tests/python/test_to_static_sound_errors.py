"""Errors inside captured functions are those of Python: their messages, their contexts, where they are raised.

See eager_twin.py for how a scenario runs.
"""

import functools
import sys

import pytest

from eager_twin import Box, raised, run_side_by_side, side_by_side


TABLE = {"a": 1}


class Odd:
    """Every result is wrong."""

    def __bool__(self):
        return 3  # noqa: PLE0304

    def __len__(self):
        return -1  # noqa: PLE0303


class Fixed:
    p = property(lambda self: 1)


def deletes_a_global():
    global never_there
    del never_there


def deletes_a_variable_twice():
    name = 1

    def reads():
        return name  # noqa: F821

    del name  # noqa: F821
    del name  # noqa: F821


def unpacks(value):
    first, second = value
    return first, second


ERRORS = {
    "max of nothing": lambda: max([]),
    "min without arguments": lambda: min(),
    "reduce of nothing": lambda: functools.reduce(lambda a, b: a + b, []),
    "unpack a number": lambda: unpacks(3),
    "unpack too few": lambda: unpacks([1]),
    "star of a number": lambda: [*3],
    "arguments of a number": lambda: unpacks(*3),
    "keywords of a number": lambda: unpacks(**3),
    "keywords that are no strings": lambda: dict(**{1: 2}),
    "a keyword twice": lambda: dict(**TABLE, **TABLE),
    "too few arguments": lambda: unpacks(),
    "object with arguments": lambda: object(1),
    "super outside of a class": lambda: super().x,
    "a name that is no string": lambda: getattr(3, 4),
    "delete a property": lambda: delattr(Fixed(), "p"),
    "dict of numbers": lambda: dict([1]),
    "update with numbers": lambda: {}.update([1]),
    "dict of triples": lambda: dict([(1, 2, 3)]),
    "bool": lambda: bool(Odd()),
    "len": lambda: len(Odd()),
    "delete a global": deletes_a_global,
    "delete a variable": deletes_a_variable_twice,
}


@pytest.mark.parametrize("name", ERRORS)
def test_messages(name, tmp_path):
    fails = ERRORS[name]

    def scenario(static, x):
        @static
        def caught(t):
            try:
                fails()
                found = "nothing"
            except Exception as error:  # noqa: BLE001
                found = type(error).__name__, str(error), type(error.__context__).__name__
            return t * 1, found

        yield caught(x()), raised(static(lambda t: (t * 1, fails())[0]), x())
        yield caught(x())

    run_side_by_side(scenario, folder=tmp_path)


@side_by_side
def test_no_error_of_a_capture_is_the_context_of_the_functions(static, x):
    c = Box(s=1.0)

    @static
    def f(t):
        about = sys.exc_info()[0]
        if float(t.sum()) < 0 or c.s < 0:
            raise ValueError("negative")
        return t * 1, about

    def contexts(*args):
        try:
            return f(*args)
        except ValueError as error:
            return str(error), error.__context__, error.__cause__

    for fill in (1.0, -1.0, 1.0, -1.0):
        yield contexts(x(fill=fill))
    c.s = -1.0
    yield contexts(x(fill=1.0))


@side_by_side
def test_no_context_where_a_branch_raises(static, x):
    @static
    def f(t):
        assert t.sum() > 0, "not positive"
        return t * 1

    def contexts(*args):
        try:
            return f(*args)
        except AssertionError as error:
            return str(error), error.__context__, error.__cause__

    for fill in (1.0, -1.0, 1.0, -1.0):
        yield contexts(x(fill=fill))


@side_by_side
def test_the_traceback_that_a_context_gets(static, x):
    class Noting:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            self.seen = kind, str(error), trace is None
            return True

    @static
    def f(t):
        noting, quiet = Noting(), Noting()
        with noting:
            raise ValueError("inside")
        with quiet:
            pass
        return t * 1, noting.seen, quiet.seen

    yield f(x())
    yield f(x())
