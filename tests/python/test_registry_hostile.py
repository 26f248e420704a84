"""Odd calls of every op: a result or a clear error, never a crash, a hang or an internal error.

A batch of ops runs in a process of its own, so that a crash is told with the call that caused it.
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


def attempt(record, what, args):
    """The complaint about one call, or nothing."""
    try:
        result = record.function(*args)
        for t in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(t, oar.Tensor):
                t.numpy()
    except EXPECTED:
        return None
    except RuntimeError as error:
        return f"{what}: {error}" if "internal" in str(error).lower() else None
    except Exception as error:  # noqa: BLE001
        return f"{what}: {type(error).__name__}: {error}"
    return None


def run_batch(names, pipe):
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
                complaint = attempt(record, what, odd)
                if complaint:
                    complaints.append(complaint)
        pipe.send(("done", name, complaints))


def survey(names):
    """{op: complaints} of a batch; a process that dies or hangs is started again behind that op."""
    found, names = {}, list(names)
    context = multiprocessing.get_context("fork")
    while names:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=run_batch, args=(names, theirs), daemon=True)
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


@pytest.mark.parametrize("start", range(0, len(WITH_SAMPLES), BATCH))
def test_odd_calls(start):
    found = survey(WITH_SAMPLES[start:start + BATCH])
    bad = {name: complaints for name, complaints in found.items() if complaints}
    assert not bad, "\n".join(f"{name}: {c}" for name, complaints in bad.items() for c in complaints)
