"""Captured functions do in Python what plain ones do: once per call, and in order."""

import random

import numpy as np
from eager_twin import Box, raised, side_by_side

import oar


# exactly once ------------------------------------------------------------------------------------


def _reads_a_value(t):
    return t * float(t.sum())


def _branches(t):
    return t * 2 if t.sum() > 0 else t - 1


def _keeps(t, kept=Box()):
    kept.last = t * 2
    return kept.last + 1


def _draws(t):
    return t * random.random()


def _writes_in_place(t):
    t = t * 1
    t.add_(oar.ones([3]))
    return t


def _prints_a_tensor(t):
    print((t * 0).sum().astype("int64"))
    return t + 1


def _numpy(t):
    return t + oar.to_tensor(np.tanh(t.numpy()))


_BODIES = (_reads_a_value, _branches, _keeps, _draws, _writes_in_place, _prints_a_tensor, _numpy)
BODIES = {f.__name__[1:]: f for f in _BODIES}
BODIES["nothing else"] = lambda t: t * 2


def _once(body):
    @side_by_side
    def scenario(static, x):
        log, state, batches = [], Box(count=0), iter(range(100))
        seen = set()

        @static
        def f(t):
            batch = next(batches)
            log.append(batch)
            print("batch", batch)
            state.count += 1
            seen.add(state.count)
            y = body(t) * batch
            log.append("done")
            return y

        for _ in range(4):
            yield f(x()), log, state, seen

    return scenario


for _name, _body in BODIES.items():
    globals()["test_python_runs_once_" + _name.replace(" ", "_")] = _once(_body)


@side_by_side
def test_effects_before_and_after_an_error(static, x):
    log, c = [], Box(fail=False)

    @static
    def f(t):
        log.append("before")
        y = t * 2
        if c.fail:
            raise KeyError(len(log))
        log.append("after")
        return y

    for c.fail in (False, False, True, False, True):
        yield raised(f, x()), log
    c.fail = True
    yield raised(static(f), x()), log


@side_by_side
def test_effects_with_other_shapes(static, x):
    log = []

    @static
    def f(t):
        log.append(tuple(t.shape))
        print("shape", *t.shape)
        return t.sum() * len(log)

    for rows in (2, 2, 3, 4, 5, 1, 0, 2):
        yield f(x(rows, 3)), log


@side_by_side
def test_an_attribute_is_written_and_read_outside(static, x):
    c = Box(last=None, sizes=[])

    @static
    def f(t):
        c.last = t * 2
        c.rows = t.shape[0]
        c.sizes.append(t.shape[1])
        return t + 1

    for rows in (2, 2, 3, 5, 4):
        yield f(x(rows, rows)), c, type(c.rows)
    c.last = None
    yield f(x()), c


@side_by_side
def test_a_size_that_escapes(static, x):
    c, sizes, table = Box(), [], {}

    @static
    def f(t):
        c.n = t.shape[0]
        sizes.append(t.shape[0] * 2)
        table[t.shape[0]] = t.numel() if isinstance(t.numel(), int) else None
        return t * 2, t.shape[0], list(t.shape), t.shape

    for rows in (2, 3, 4, 5, 2):
        yield f(x(rows, 3)), c, sizes, table, type(c.n), [type(s) for s in sizes]


SIZES = {
    "in a set": lambda t: t * 2 if t.shape[0] in {4, 6} else t,
    "in a tuple": lambda t: t * 2 if t.shape[0] in (4, 6) else t,
    "in a dictionary": lambda t: t * {4: 2.0, 6: 3.0}.get(t.shape[0], 1.0),
    "as a string": lambda t: t * len(str(t.shape[0])),
    "formatted": lambda t: (t, f"{t.shape[0]} rows", "%d" % t.shape[0], repr(t.shape[0])),
    "hashed": lambda t: t * hash(t.shape[0]),
    "as a float": lambda t: t * float(t.shape[0]),
    "divided": lambda t: (t / t.shape[0], t.shape[0] / 2, t.shape[0] // 2, t.shape[0] % 3, divmod(t.shape[0], 3)),
    "as a range": lambda t: [t[i].sum() for i in range(t.shape[0])],
    "as an index": lambda t: t[t.shape[0] - 1] * [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12][t.shape[0]],
    "compared": lambda t: t * 2 if t.shape[0] > 4 else t,
    "compared to a string": lambda t: t * 2 if t.shape[0] == "4" else t,
    "as a truth": lambda t: t * 2 if t.shape[0] else t - 1,
    "its type": lambda t: (t, type(t.shape[0]) is int, isinstance(t.shape[0], int)),
    "in numpy": lambda t: t * np.sqrt(t.shape[0]),
    "in max": lambda t: t * max(t.shape[0], 4) + min(t.shape),
    "in a list of sizes": lambda t: t.shape.index(3) + t.sum() if 3 in t.shape else t,
    "sorted": lambda t: (t, sorted(t.shape)),
    "made into a tensor": lambda t: t * oar.to_tensor(t.shape[0]) + oar.full([t.shape[0], 1], 2.0),
    "as bits": lambda t: t * (t.shape[0] & 1) + (t.shape[0] << 1),
    "rounded": lambda t: t * round(t.shape[0] / 3) * int(t.shape[0] * 1.5),
    "as a slice": lambda t: t[: t.shape[0] // 2] if t.shape[0] > 1 else t,
    "len": lambda t: t * len(t) + len(t.shape) + t.ndim,
    "powers": lambda t: t * t.shape[0] ** 2 + t.shape[0] ** 0.5 + t.shape[0] ** -1.0,
    "bool and or": lambda t: t * ((t.shape[0] > 3 and t.shape[1]) or 7),
    "is": lambda t: (t, t.shape[0] is None, t.shape[0] == 4, t.shape == [4, 3], tuple(t.shape)),
}


def _one_size(use):
    @side_by_side
    def scenario(static, x):
        f = static(use)
        for rows in (3, 4, 5, 6, 4, 12, 1, 7):
            yield f(x(rows, 3))

    return scenario


for _name, _use in SIZES.items():
    globals()["test_a_size_" + _name.replace(" ", "_")] = _one_size(_use)
