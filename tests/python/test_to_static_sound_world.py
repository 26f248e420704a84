"""Captured functions never give a stale result: the environment, files, clocks, random numbers and modes."""

import contextlib
import datetime
import io
import logging
import os
import random
import sys
import time
import uuid
import warnings

import numpy as np
import pytest
from eager_twin import Box, raised, side_by_side

import oar
from oar import nn
from oar.jit import to_static


# the world outside -------------------------------------------------------------------------------


@side_by_side
def test_the_environment(static, x):
    os.environ["OAR_SOUND_TEST"] = "1"

    @static
    def f(t):
        extra = float(os.getenv("OAR_SOUND_TEST_EXTRA", "0"))
        return t * float(os.environ["OAR_SOUND_TEST"]) + extra, "OAR_SOUND_TEST_EXTRA" in os.environ

    yield f(x())
    yield f(x())
    os.environ["OAR_SOUND_TEST"] = "2"
    yield f(x())
    os.environ["OAR_SOUND_TEST_EXTRA"] = "5"
    yield f(x())
    del os.environ["OAR_SOUND_TEST_EXTRA"]
    yield f(x())


@side_by_side
def test_files(static, x, folder):
    path = folder / "scale.txt"

    @static
    def f(t):
        with open(path) as file:
            scale = float(file.read())
        return t * scale, path.exists(), len(os.listdir(folder)), path.stat().st_size

    for text in ("1.0", "1.0", "2.5", "3.25"):
        path.write_text(text)
        yield f(x())
    (folder / "another").write_text("")
    yield f(x())
    path.unlink()
    yield raised(f, x(), message=False)


@side_by_side
def test_files_that_are_open_or_written(static, x, folder):
    (folder / "numbers").write_text("1\n2\n3\n4\n5\n")
    source = open(folder / "numbers")

    @static
    def f(t):
        n = float(source.readline())
        with open(folder / "log", "a") as log:
            log.write(f"{n}\n")
        return t * n

    for _ in range(4):
        yield f(x()), (folder / "log").read_text()
    source.seek(0)
    yield f(x())
    source.close()


@side_by_side
def test_streams_in_memory(static, x):
    stream = io.StringIO()

    @static
    def f(t):
        stream.write("line\n")
        return t * len(stream.getvalue())

    for _ in range(3):
        yield f(x()), stream.getvalue()


CLOCKS = {
    "time": time.time, "time_ns": time.time_ns, "perf_counter": time.perf_counter, "monotonic": time.monotonic,
    "now": datetime.datetime.now, "uuid": lambda: uuid.uuid4().hex, "urandom": lambda: os.urandom(8),
    "process_time_ns": lambda: sum(range(20000)) * 0 + time.process_time_ns(), "system": random.SystemRandom().random,
}


@pytest.mark.parametrize("name", CLOCKS)
def test_clocks_and_what_is_never_the_same(name):
    clock = CLOCKS[name]
    f = to_static(lambda t: (t * 2, clock()))
    seen = []
    for _ in range(4):
        seen.append(f(oar.ones([2]))[1])
        time.sleep(0.001)
    assert len(set(seen)) == 4


@side_by_side
def test_random_numbers_of_python_and_numpy(static, x):
    own, rng = random.Random(3), np.random.default_rng(3)

    @static
    def f(t):
        scale = random.random() + own.uniform(0, 1) + np.random.rand() + rng.standard_normal()
        items = [1, 2, 3, 4]
        random.shuffle(items)
        return t * scale + random.choice(items), items, np.random.randint(10), oar.to_tensor(rng.random(3)) + 1

    for _ in range(4):
        yield f(x())
    random.seed(1), np.random.seed(1), own.seed(1)
    yield f(x())
    yield random.random(), np.random.rand(), own.random()  # as many numbers were drawn


@side_by_side
def test_random_numbers_of_the_library(static, x):
    f = static(lambda t: (t + oar.rand([3]), nn.functional.dropout(t, 0.5), oar.randint(0, 9, [2])))
    yield f(x())
    yield f(x()), oar.rand([1])

    @static
    def seeded(t):
        oar.seed(11)
        return t + oar.rand([3])

    yield seeded(x()), oar.rand([2])
    yield seeded(x()), oar.rand([2])
    yield oar.rand([2]), seeded(x()), oar.rand([2])

    @static
    def states(t):
        state = oar.get_rng_state()
        a = oar.rand([2])
        oar.set_rng_state(state)
        return t.sum() + a, oar.rand([2])

    yield states(x()), states(x()), oar.rand([2])


@side_by_side
def test_flags(static, x):
    name = "FLAGS_check_nan_inf"

    @static
    def f(t):
        return t * (2 if oar.get_flags([name])[name] else 3), oar.get_flags(name)

    try:
        for value in (False, False, True, False):
            oar.set_flags({name: value})
            yield f(x())
    finally:
        oar.set_flags({name: False})


@side_by_side
def test_modes_of_the_library(static, x):
    @static
    def f(t):
        made = oar.ones([3])
        return t * 2 + made, oar.get_default_dtype(), oar.is_grad_enabled(), made.dtype == oar.float64

    yield f(x())
    oar.set_default_dtype("float64")
    yield f(x())
    oar.set_default_dtype("float32")
    yield f(x())
    with oar.no_grad():
        yield f(x())
    yield f(x())
    with oar.amp.auto_cast(dtype="bfloat16"):
        yield f(x()), static(lambda a: a @ a.t())(x())
    yield f(x())


@side_by_side
def test_modes_set_inside(static, x):
    c = Box(off=True)

    @static
    def f(t):
        with oar.no_grad() if c.off else contextlib.nullcontext():
            y = t * 2
        inside = oar.is_grad_enabled()
        oar.set_default_dtype("float64" if c.off else "float32")
        made = oar.zeros([3])
        return y + t, inside, made

    for c.off in (True, True, False, True):
        yield f(x()), oar.get_default_dtype(), oar.is_grad_enabled()
        oar.set_default_dtype("float32")


@side_by_side
def test_warnings_and_their_filters(static, x):
    @static
    def f(t):
        warnings.warn("look here", UserWarning, stacklevel=1)
        return t * 2

    for action in ("always", "always", "ignore", "error", "always"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            got = raised(f, x())
        yield got, [str(w.message) for w in caught]


@side_by_side
def test_logging(static, x):
    records, logger = [], logging.getLogger("sound")
    logger.propagate = False
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logger.handlers[:] = [handler]

    @static
    def f(t):
        logger.info("rows %d", t.shape[0])
        if logger.isEnabledFor(logging.DEBUG):
            t = t * 2
        logger.debug("sum %.2f", float(t.sum()))
        return t

    for level in (logging.INFO, logging.INFO, logging.DEBUG, logging.ERROR):
        logger.setLevel(level)
        yield f(x()), records


@side_by_side
def test_standard_output_is_replaced(static, x):
    @static
    def f(t):
        print("rows", t.shape[0], end=";")
        sys.stdout.write("more")
        return t * 2

    yield f(x())
    with contextlib.redirect_stdout(io.StringIO()) as out:
        f(x())
    yield out.getvalue()
    yield f(x())


@side_by_side
def test_numpy_writes_into_an_array_outside(static, x):
    total, step = np.zeros(3, "float32"), np.ones(3, "float32")

    @static
    def f(t):
        np.add(total, step, total)
        return t * oar.to_tensor(total)

    yield f(x(2, 3)), total.tolist()
    step[:] = 5
    yield f(x(2, 3)), total.tolist()
