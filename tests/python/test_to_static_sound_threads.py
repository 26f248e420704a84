"""Signals and threads: captured functions lose no exception and mix up no thread."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import oar
from oar.jit import to_static


# signals and threads -----------------------------------------------------------------------------


class Alarm(Exception):
    pass


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("falls_back", [True, False])
def test_an_exception_of_a_signal_handler_comes_out(first, falls_back):
    def handler(number, frame):
        raise Alarm("stop")

    fire = not first
    count = 0

    @to_static
    def f(t):
        nonlocal count
        count += falls_back
        y = t * 2
        if fire:
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(1000):
                pass
        return y + 1

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        if not first:
            fire = False
            f(oar.ones([2]))
        fire = True
        with pytest.raises(Alarm):
            f(oar.ones([2]))
        fire = False
        assert f(oar.ones([2])).tolist() == [3.0, 3.0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_exception_of_a_signal_handler_in_the_library_comes_out():
    """The alarm comes while many ops are called, wherever the function is by then."""
    depth = 300

    def f(t):
        for _ in range(depth):
            t = t * 1.01 + 0.1
        return t

    def handler(number, frame):
        raise Alarm("stop")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for delay in (0.0005, 0.002, 0.005, 0.01):
            static, came = to_static(f), False
            signal.setitimer(signal.ITIMER_REAL, delay)
            try:
                end = time.monotonic() + 2
                while time.monotonic() < end:
                    static(oar.ones([2]))
            except Alarm:
                came = True
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert came
            np.testing.assert_allclose(static(oar.ones([2])).numpy(), f(oar.ones([2])).numpy(), rtol=1e-5)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_interrupts_during_the_first_call():
    @to_static
    def f(t):
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            f(oar.ones([2]))

    @to_static
    def leaves(t):
        sys.exit(3)

    for _ in range(2):
        with pytest.raises(SystemExit):
            leaves(oar.ones([2]))


def test_threads_that_change_what_others_read():
    """Every thread has its own configuration; none sees another's."""
    local = threading.local()
    f = to_static(lambda t: t * local.s + local.table["k"])
    wrong = []

    def work(number):
        local.table = {"k": number}
        for i in range(30):
            local.s = float(i % 3)
            if f(oar.ones([2])).tolist() != [local.s + number] * 2:
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_threads_with_effects():
    log, lock = [], threading.Lock()

    @to_static
    def f(t, number):
        with lock:
            log.append(number)
        return t * number

    wrong = []

    def work(number):
        for _ in range(20):
            if f(oar.ones([2]), number).tolist() != [number] * 2:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and sorted(log) == sorted([0, 1, 2, 3] * 20)
