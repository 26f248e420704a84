"""Signals while a program runs: they are heard soon, reach the user as they are, and leave states unwritten."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import oar


@pytest.fixture
def handlers():
    """Restores what a test installs."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has none
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class TimeIsUp(Exception):
    pass


def raise_time_is_up(number, frame):
    raise TimeIsUp


def long_step():
    """A captured step of a second or more without a loop, which writes a state in the end, and the state."""
    state = oar.zeros([1])
    x = oar.rand([500, 500]) / 500.0

    @oar.jit.to_static
    def step(x):
        y = x
        for _ in range(300):
            y = oar.matmul(y, x)
        state.add_(y.sum().reshape([1]) * 0 + 1)
        return y

    return step, x, state


@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, TimeIsUp)])
def test_a_straight_program_stops(handlers, number, error):
    signal.signal(signal.SIGALRM, raise_time_is_up)
    step, x, state = long_step()
    started = time.monotonic()
    step(x)
    whole = time.monotonic() - started
    state.set_value(np.zeros([1], "float32"))
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    threading.Timer(whole / 8, send).start()
    with pytest.raises(error):
        step(x)
        time.sleep(2 * whole)  # where the program was faster than the timer
    assert time.monotonic() - sent[0] < max(0.5, whole / 3)
    assert state.item() == 0
    step(x)
    assert state.item() == 1
