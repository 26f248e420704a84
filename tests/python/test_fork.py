"""Children that are forked while other threads of the parent hold locks of the library."""

import importlib
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import oar


def child_status(work, seconds=60):
    """The result in a forked child: its exit status, or None if it hangs."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def busy_with(work):
    """A thread that does it again and again, and what stops it."""
    ended = threading.Event()

    def run():
        while not ended.is_set():
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def stop():
        ended.set()
        thread.join(60)

    return stop


def capture_something():
    size = random.randint(2, 50)
    program = oar.jit.capture(lambda x: oar.tanh(x * 2 + 1).sum(0), [oar.static.InputSpec([None, size])])
    program(oar.ones([3, size]))


def make_tensors():
    for n in (10, 1000, 100000):
        np.asarray(oar.rand([n]) + 1)


def compute_in_segments():
    x = oar.rand([50, 50])
    function = oar.jit.to_static(lambda a: a * 2 if float((a + 1).sum()) > 0 else a)
    for _ in range(3):
        function(x)


def take_gradients():
    w = oar.rand([20, 20])
    w.stop_gradient = False
    oar.matmul(w, w).sum().backward()


WORK = {"capture": capture_something, "tensors": make_tensors, "gradients": take_gradients}


@pytest.mark.parametrize("other", [*WORK, "segments"])
def test_a_child_computes_whatever_other_threads_were_doing(other):
    def all_of_it():
        for work in WORK.values():
            work()
        oar.set_flags({"FLAGS_check_nan_inf": False})
        assert float(oar.ones([300, 300]).matmul(oar.ones([300, 300])).sum()) == 300 ** 3

    stop = busy_with({**WORK, "segments": compute_in_segments}[other])
    try:
        for _ in range(8):
            assert child_status(all_of_it) == 0
    finally:
        stop()


def test_a_child_may_build_extensions_while_the_parent_does():
    held = threading.Event()
    ended = threading.Event()

    def hold():
        with _lock_of_builds():
            held.set()
            ended.wait(120)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait(60)
    try:
        def take():
            assert _lock_of_builds().acquire(timeout=5)

        assert child_status(take) == 0
    finally:
        ended.set()
        thread.join(60)


def _lock_of_builds():
    return importlib.import_module("oar.utils.cpp_extension.load")._threads
