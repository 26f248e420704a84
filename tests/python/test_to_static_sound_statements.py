"""Captured functions never give a stale result: the statements of Python."""

import pytest
from eager_twin import Box, raised, run_side_by_side, side_by_side

import oar
from oar.nn import functional as F

COUNTER = 0


# statements --------------------------------------------------------------------------------------


@side_by_side
def test_nonlocal_and_global(static, x):
    global COUNTER
    COUNTER, count = 0, 0

    @static
    def f(t):
        global COUNTER
        nonlocal count
        COUNTER += 1
        count += 2
        return t * count + COUNTER

    for _ in range(4):
        yield f(x()), count, COUNTER
    count = 100
    yield f(x()), count, COUNTER


@side_by_side
def test_exceptions_as_control_flow(static, x):
    table, c = {"a": 1.0}, Box(key="a")

    class Stop(Exception):
        pass

    @static
    def f(t):
        log = []
        try:
            t = t * table[c.key]
            if c.key == "stop":
                raise Stop("now")
        except KeyError as error:
            log.append(str(error))
            t = t - 1
        except Stop as stop:
            t, log = t + 100, [*stop.args]
        else:
            log.append("else")
        finally:
            log.append("finally")
        return t, log

    for c.key in ("a", "a", "b", "stop", "a"):
        table.pop("stop", None) if c.key != "stop" else table.update(stop=2.0)
        yield f(x())


@side_by_side
def test_errors_of_the_function_itself(static, x):
    c, log = Box(bad=False), []

    @static
    def f(t):
        log.append("begun")
        try:
            if c.bad:
                raise ValueError(f"bad is {c.bad}")
            assert t.shape[0] == 2, "two rows"
            return t * 2
        finally:
            log.append("ended")

    for c.bad in (False, True, False, True, True):
        yield raised(f, x()), log
    yield raised(f, x(3, 3)), log, raised(f, x(2, 3)), log


def _leaves_with(t):
    with oar.no_grad():
        raise ValueError(1)


def _leaves_except(t):
    try:
        raise KeyError("k")
    except KeyError as error:
        raise ValueError(2) from error


def _leaves_finally(t):
    try:
        raise KeyError("k")
    finally:
        print("finally")


def _raises_again(t):
    try:
        t = t + {}["absent"]
    except KeyError:
        print("seen")
        raise


def _replaces_the_error(t):
    try:
        raise KeyError("k")
    finally:
        return t * 2  # noqa: B012 - the point of the test


@pytest.mark.parametrize(
    "function", [_leaves_with, _leaves_except, _leaves_finally, _raises_again, _replaces_the_error],
    ids=lambda f: f.__name__)
def test_errors_that_leave_a_handler(function, tmp_path):
    def scenario(static, x):
        f = static(function)
        g = static(lambda t: raised(function, t))
        for _ in range(3):
            yield raised(f, x()), raised(g, x())

    run_side_by_side(scenario, False, tmp_path)


@side_by_side
def test_loops_with_else_break_and_continue(static, x):
    c = Box(n=2, stop=5, skip=1)

    @static
    def f(t):
        i = 0
        while i < c.n:
            i += 1
            if i == c.skip:
                continue
            if i == c.stop:
                break
            t = t * i
        else:
            t = t + 100
        for k in range(c.n):
            if k == c.stop:
                break
            for j in range(k):
                t = t + j
        else:
            return t, i
        return t - 1, i

    for c.n, c.stop, c.skip in ((2, 5, 1), (2, 5, 1), (4, 3, 1), (4, 9, 2), (0, 0, 0)):
        yield f(x())


@side_by_side
def test_match(static, x):
    c = Box(command=("scale", 2.0))

    @static
    def f(t):
        match c.command:
            case ("scale", float(by)) if by > 1:
                return t * by
            case ("scale", by):
                return t - by
            case {"shift": by, **rest}:
                return t + by + len(rest)
            case Box(s=s):
                return t / s
            case [first, *others]:
                return t * first + len(others)
            case "a" | "b":
                return t + 1
            case None:
                return t
        return t * 0

    for c.command in (("scale", 2.0), ("scale", 2.0), ("scale", 0.5), {"shift": 3.0}, {"shift": 3.0, "z": 1},
                      Box(s=4.0), [1, 2, 3], "b", None, 17, ("scale", 2.0)):
        yield f(x())


@side_by_side
def test_expressions(static, x):
    c = Box(a=1, b=2, s="v")

    @static
    def f(t):
        (first, *middle), last = [c.a, c.b, 3], c.s
        text = f"{c.a:>3}|{c.s!r}|{c.a + c.b}"
        chain = 0 < c.a < c.b
        if (total := c.a + c.b) > 3:
            t = t * total
        middle[0] += 5
        c_copy = {**vars(c), "extra": (c.a, *middle)}
        numbers = c.s * c.a, c.a if chain else c.b, -c.a, ~c.b, not c.a, c.a ^ c.b
        return t + first, middle, last, text, chain, c_copy, numbers

    for c.a, c.b, c.s in ((1, 2, "v"), (1, 2, "v"), (3, 2, "v"), (3, 2, "w"), (0, 5, "v")):
        yield f(x())


@side_by_side
def test_sorted_with_a_key(static, x):
    weights = {"a": 2.0, "b": 1.0, "c": 3.0}
    f = static(lambda t: (t * sorted(weights, key=weights.get).index("a"), sorted(weights, key=lambda n: -weights[n]),
                          min(weights.items(), key=lambda pair: pair[1])))
    yield f(x())
    weights["a"] = 0.0
    yield f(x())
    weights["d"] = -1.0
    yield f(x())


@side_by_side
def test_strings(static, x):
    c = Box(name="relu", text="1,2")
    f = static(lambda t: (getattr(F, c.name)(t), t * sum(map(int, c.text.split(","))), c.name.upper(), "%s" % c.text,
                          "{}-{}".format(c.name, c.text), c.text in "0,1,2",
                          eval("1 + len(c.text)", {"c": c, "len": len})))
    for c.name, c.text in (("relu", "1,2"), ("relu", "1,2"), ("tanh", "1,2"), ("tanh", "3,4,5")):
        yield f(x())
