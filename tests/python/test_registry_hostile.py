"""Odd calls of every op, inner ones too: a result or a user's error, never a crash, a hang or an internal error.

Each call is made eagerly and as a captured program, whose attributes are then as odd as those of the call. A batch of
ops runs in a process of its own, so that a crash is told with the call that caused it.
"""

import multiprocessing
import os
import signal
import sys

import pytest

import oar
from registry.hostile import calls
from registry.records import RECORDS
from test_registry_arguments import base_dtype

SECONDS = 60  # for one op; what takes longer hangs
BATCH = 24
EXPECTED = (TypeError, ValueError, IndexError, MemoryError, NotImplementedError, OverflowError)


def eagerly(record, args):
    return record.function(*args)


def captured(record, args):
    """The call as a program of its tensors."""
    given = [t for value in args for t in tensors_in(value)]

    def call(*inputs):
        left = iter(inputs)
        filled = [[next(left) if isinstance(v, oar.Tensor) else v for v in value] if isinstance(value, (list, tuple))
                  else next(left) if isinstance(value, oar.Tensor) else value for value in args]
        return record.function(*filled)

    return oar.jit.capture(call, given)(*given)


def tensors_in(value):
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [t for t in listed if isinstance(t, oar.Tensor)]


def attempt(record, what, args, run):
    """The complaint about one call, or nothing."""
    try:
        for t in tensors_in(run(record, args)):
            t.numpy()
    except EXPECTED:
        return None
    except Exception as error:  # noqa: BLE001
        return f"{what}: {type(error).__name__}: {error}"
    return None


def run_batch(names, run, pipe):
    """In the child: says what is tried before it is tried."""
    oar.set_flags({"memory_limit_mb": 512})
    by_name = {r.name: r for r in RECORDS}
    sys.stderr = open(os.devnull, "w")
    for name in names:
        record = by_name[name]
        complaints = []
        for args in record.samples(base_dtype(record))[:2]:
            for what, odd in calls(args):
                pipe.send(("trying", name, what))
                complaint = attempt(record, what, odd, run)
                if complaint:
                    complaints.append(complaint)
        pipe.send(("done", name, complaints))


def survey(names, run):
    """{op: complaints} of a batch; a process that dies or hangs is started again after that op."""
    found, names = {}, list(names)
    context = multiprocessing.get_context("fork")
    while names:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=run_batch, args=(names, run, theirs), daemon=True)
        child.start()
        theirs.close()
        current, trying = names[0], "starting"
        while names:
            if not ours.poll(SECONDS):
                found[current] = [f"{trying}: no answer for {SECONDS} s"]
                break
            try:
                kind, current, detail = ours.recv()
            except EOFError:
                child.join()
                number = -(child.exitcode or 0)
                found[current] = [f"{trying}: {signal.Signals(number).name if number > 0 else 'ended'}"]
                break
            if kind == "done":
                found[current] = detail
                names.remove(current)
                current = names[0] if names else current
            else:
                trying = detail
        if current in names:
            names.remove(current)
        child.kill()
        child.join()
    return found


WITH_SAMPLES = sorted(r.name for r in RECORDS if r.samples(base_dtype(r)))


@pytest.mark.parametrize("run", [eagerly, captured])
@pytest.mark.parametrize("start", range(0, len(WITH_SAMPLES), BATCH))
def test_odd_calls(start, run):
    found = survey(WITH_SAMPLES[start:start + BATCH], run)
    bad = {name: complaints for name, complaints in found.items() if complaints}
    assert not bad, "\n".join(f"{name}: {c}" for name, complaints in bad.items() for c in complaints)
