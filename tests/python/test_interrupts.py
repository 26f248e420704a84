"""Signals while a program or a segment runs: they are heard soon, reach the user as they are, and leave states unwritten."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import oar
from oar import _C


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


# Segments ----------------------------------------------------------------------------------------


def long_segment(kept):
    """A function whose calls are all queued until it ends, its operand, and the state that it writes. It keeps its last product."""
    x = oar.rand([500, 500]) / 500.0
    state = oar.zeros([1])

    def step(x):
        y = x
        for _ in range(200):
            y = oar.matmul(y, x)
        kept.append(y)
        state.add_(y.sum().reshape([1]) * 0 + 1)
        return y

    return (lambda x: _C.run_in_segments(step, (x,), {}, "")), x, state


def interrupted(step, x, number, after):
    """Sends the signal in the middle of a run. Returns when it was sent."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        step(x)
        time.sleep(8 * after)  # where the run was faster than the timer
    finally:
        timer.join()
        interrupted.late = time.monotonic() - sent[0]


@pytest.mark.parametrize("as_program", [False, True], ids=["one by one", "program"])
@pytest.mark.parametrize("number, error", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, TimeIsUp)])
def test_a_segment_stops(handlers, number, error, as_program):
    signal.signal(signal.SIGALRM, raise_time_is_up)
    kept = []
    step, x, state = long_segment(kept)
    started = time.monotonic()
    step(x)
    whole = time.monotonic() - started
    if as_program:
        step(x)  # the second of the same structure is a program from its start
    else:
        x = oar.rand([501, 501]) / 501.0
    state.set_value(np.zeros([1], "float32"))
    kept.clear()
    with pytest.raises(error):
        interrupted(step, x, number, whole / 8)
    assert interrupted.late < max(0.5, whole / 3)
    assert state.item() == 0
    # Results that were not computed raise the error as long as they live; all else works.
    (lost,) = kept
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"\[matmul\] this result has not been computed.*Call the function"):
            lost.numpy()
        with pytest.raises(RuntimeError, match="has not been computed"):
            lost + 1
        assert float((x[0, 0] * 0).item()) == 0
    kept.clear()
    del lost
    state.set_value(np.zeros([1], "float32"))
    assert np.isfinite(step(x).numpy()).all()
    assert state.item() == 1


def test_a_handler_that_returns_lets_the_segment_go_on(handlers):
    kept, heard = [], []
    step, x, state = long_segment(kept)
    expected = step(x).numpy()
    started = time.monotonic()
    step(x)
    whole = time.monotonic() - started

    def handler(number, frame):
        heard.append((oar.ones([2]) + 1).tolist())
        with pytest.raises(RuntimeError, match="whose content is being computed"):
            kept[-1].numpy()
        with pytest.raises(RuntimeError, match="whose content is being computed"):
            kept[-1] * 2

    signal.signal(signal.SIGALRM, handler)
    timer = threading.Timer(whole / 4, lambda: os.kill(os.getpid(), signal.SIGALRM))
    timer.start()
    got = step(x)
    timer.join()
    np.testing.assert_array_equal(got.numpy(), expected)
    assert heard == [[2.0, 2.0]] and state.item() == 3


def test_a_thread_that_waits_for_a_segment_does_not_block_a_signal(handlers):
    """The check needs the interpreter lock, which the thread that waits for the result would hold."""
    kept = []
    step, x, _ = long_segment(kept)
    started = time.monotonic()
    step(x)
    whole = time.monotonic() - started
    kept.clear()
    seen = []

    def read():
        until = time.monotonic() + 20
        while not kept and time.monotonic() < until:
            time.sleep(0.001)
        try:
            seen.append(kept[0].numpy())
        except RuntimeError as error:
            seen.append(str(error))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with pytest.raises(KeyboardInterrupt):
        interrupted(step, x, signal.SIGINT, whole / 2)
    reader.join(20)
    assert not reader.is_alive() and len(seen) == 1
