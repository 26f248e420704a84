"""Runs a script twice, with plain functions and with captured ones, and says where they differ."""

from __future__ import annotations

import contextlib
import functools
import io
import linecache
import pathlib
import random
import signal
import sys
import types
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import eager_twin  # noqa: E402

import oar  # noqa: E402
from oar import nn  # noqa: E402
from oar.jit import StaticFunction, capture_counts, to_static  # noqa: E402

__all__ = ["Outcome", "compare", "run"]

_GIVEN = {"oar": oar, "nn": nn, "F": nn.functional, "np": np, "random": random, "functools": functools}
_DRIVER = ("static", "branching", "x", "show", "call", "look")
_UNSEEN = (types.FunctionType, type, types.ModuleType, StaticFunction, functools.partial)
_TOLERANCE = 2e-4
# Processor time: most scripts need a few milliseconds, and a busy machine does not count.
_SECONDS = 30.0


class _Endless(BaseException):
    """A script has not ended in time."""


@contextlib.contextmanager
def _in_time():
    def stop(number, frame):
        raise _Endless

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Outcome:
    """What one run of a script showed: a record for every call, and the error that ended it early."""

    def __init__(self) -> None:
        self.shown: list = []
        self.error: str | None = None
        self.raised: set[str] = set()
        self.counts = {"captures": 0, "whole": 0, "segments": 0, "eager": 0}


def run(script: str, captured: bool) -> Outcome:
    outcome, inputs, static_functions = Outcome(), eager_twin.Inputs(True), []
    oar.seed(7), random.seed(7), np.random.seed(7)
    world: dict = {"__name__": "fuzzed", **_GIVEN}
    gradient = _exact

    def static(function):
        if not captured:
            return function
        static_functions.append(to_static(function))
        return static_functions[-1]

    def branching(function):
        nonlocal gradient
        gradient = _nonzero
        return static(function)

    def call(function, *args):
        outcome.shown.append(_record(function, args, inputs, world, outcome, _unseen))

    def show(function, *args):
        outcome.shown.append(_record(function, args, inputs, world, outcome, gradient))

    def look():
        outcome.shown.append((_state(world, gradient),))

    world |= {"static": static, "branching": branching, "x": inputs, "show": show, "call": call, "look": look}
    name = "<script>"
    linecache.cache[name] = (len(script), None, script.splitlines(keepends=True), name)
    try:
        with warnings.catch_warnings(), _in_time():
            warnings.simplefilter("ignore")
            exec(compile(script, name, "exec"), world)
    except _Endless:
        outcome.error = f"no end after {_SECONDS:.0f} seconds"
    except Exception as error:  # noqa: BLE001 - an edit that fails must fail in both runs
        outcome.error = f"{type(error).__name__}: {error}"
    finally:
        oar._C.set_grad_enabled(True)
    for function in static_functions:
        for key, value in capture_counts(function).items():
            outcome.counts[key] += value
    return outcome


# Of a tensor's gradient, what is compared.


def _exact(tensor):
    return tensor.grad


def _nonzero(tensor):
    """A branch that is not taken leaves zeros where eager mode leaves None: docs/to-static.md."""
    return None if tensor.grad is None or not tensor.grad.numpy().any() else tensor.grad


def _unseen(tensor):
    return None


def _record(function, args, inputs, world, outcome, gradient):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(*args)
        except Exception as error:  # noqa: BLE001 - the other run must raise the same
            outcome.raised.add(type(error).__name__)
            own = type(error) in (ValueError, KeyError) and len(str(error)) < 9  # raised by the script itself
            result = "raised", type(error).__name__, str(error) if own else ""
    given = inputs.of_step()
    seen = eager_twin.snapshot((result, given))
    failed = eager_twin.backward(result) if oar.is_grad_enabled() else None
    gradients = eager_twin.snapshot([gradient(t) for t in given])
    return seen, failed, gradients, _state(world, gradient), printed.getvalue()


def _state(world, gradient):
    """Everything in the world that a script can change."""
    found = []
    for name, value in world.items():
        if name.startswith("__") or name in _DRIVER or name in _GIVEN:
            continue
        if isinstance(value, _UNSEEN) or hasattr(value, "__next__"):
            continue
        found.append((name, _of_layer(value, gradient) if isinstance(value, nn.Layer) else _of(value, gradient)))
    return eager_twin.snapshot(found)


def _of_layer(layer, gradient):
    parameters = [(name, p, gradient(p)) for name, p in layer.named_parameters()]
    kinds = (int, float, str, oar.Tensor)
    plain = {k: v for k, v in vars(layer).items() if not k.startswith("_") and isinstance(v, kinds)}
    return parameters, list(layer.named_buffers()), plain, [part.training for part in layer.sublayers()]


def _of(value, gradient):
    if isinstance(value, oar.optimizer.Optimizer):
        return value.get_lr(), [v for v in value.state_dict().values() if isinstance(v, oar.Tensor)]
    if isinstance(value, oar.optimizer.lr.LRScheduler):
        return value.last_lr, value.last_epoch
    return (value, gradient(value)) if isinstance(value, oar.Tensor) else value


def compare(script: str) -> tuple[str | None, Outcome, Outcome]:
    """The first difference in words, and both outcomes."""
    want, got = run(script, False), run(script, True)
    for number, (g, w) in enumerate(zip(got.shown, want.shown), 1):
        names = ("result", "backward", "gradients", "state", "printed") if len(g) > 1 else ("state",)
        for part, one, other in zip(names, g, w):
            found = eager_twin.differences(one, other, part, _TOLERANCE, _TOLERANCE)
            if found:
                return f"call {number}: {found}", want, got
    if got.error != want.error:
        return f"after call {len(got.shown)}: got {got.error}, eager mode gives {want.error}", want, got
    if len(got.shown) != len(want.shown):
        return f"{len(got.shown)} calls, eager mode makes {len(want.shown)}", want, got
    return None, want, got
