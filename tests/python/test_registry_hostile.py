"""Odd calls of every op, inner ones too: a result or a user's error, never a crash, a hang or an internal error. An error
begins with the op and names an argument.

Each call runs eagerly and as a captured program, whose attributes are then as odd as those of the call. A batch of
ops runs in its own process, so that a crash is reported with the call that caused it.
"""

import multiprocessing
import os
import re
import signal
import sys

import pytest

import oar
from registry.hostile import calls
from registry.records import SAMPLED, fits
from test_registry_arguments import base_dtype

SECONDS = 60  # for one op; what takes longer hangs
BATCH = 24
EXPECTED = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError)
# What does not name its op yet: a captured integer below -2**62 is taken for a size, and with_shape is checked by
# whoever runs the program.
UNNAMED = re.compile(r" is not a size\.$|^x is .*, not of the shape ")


def eagerly(record, args):
    return record.function(*args)


def captured(record, args):
    """The call as a program of its tensors."""
    given = [t for value in args for t in tensors_in(value)]

    def call(*inputs):
        left = iter(inputs)
        filled = [[next(left) if isinstance(v, oar.Tensor) else v for v in value] if isinstance(value, (list, tuple))
                  else next(left) if isinstance(value, oar.Tensor) else value for value in args]
        # What an op writes must be a copy: a captured function leaves its inputs as they are.
        filled = [copied(value) if "!" in kind else value for kind, value in zip(record.types, filled)]
        return record.function(*filled)

    return oar.jit.capture(call, given)(*given)


def copied(value):
    if isinstance(value, (list, tuple)):
        return [copied(v) for v in value]
    return oar.assign(value) if isinstance(value, oar.Tensor) else value


def tensors_in(value):
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [t for t in listed if isinstance(t, oar.Tensor)]


def lacks(record, text, run):
    """What the text of an error should do and does not: begin with the op, name an argument. A captured program may say
    it of a part of the op."""
    if run is captured:
        return None if record.name in text or UNNAMED.search(text) else "name the op"
    if not text.startswith(f"[{record.name}] "):
        return f"begin with [{record.name}]"
    named = any(re.search(rf"\b{re.escape(name)}\b", text[len(record.name) + 2:]) for name in record.parameters)
    return None if named else f"name an argument ({', '.join(record.parameters)})"


def attempt(record, what, args, run):
    """The complaint about one call, or nothing. An error has a user's class and is clear."""
    try:
        results = tensors_in(run(record, args))
    except MemoryError:
        return None
    except EXPECTED as error:
        missing = lacks(record, str(error), run)
        return f"{what}: the error does not {missing}: {type(error).__name__}: {error}" if missing else None
    except Exception as error:  # noqa: BLE001
        return f"{what}: {type(error).__name__}: {error}"
    try:
        for t in results:
            t.numpy()
    except (MemoryError, ValueError):
        return None  # a view of one element may show more than NumPy can hold
    except Exception as error:  # noqa: BLE001
        return f"{what}: {type(error).__name__}: {error}"
    return None


def attempt_as_it_is(record, args, run):
    """The sample itself must run: else every odd call would fail for another reason than its own."""
    try:
        for t in tensors_in(run(record, args)):
            t.numpy()
    except Exception as error:  # noqa: BLE001
        return f"the sample itself: {type(error).__name__}: {error}"
    return None


def run_batch(names, run, pipe):
    """In the child: reports each attempt before it starts."""
    oar.set_flags({"memory_limit_mb": 512})
    by_name = {r.name: r for r in SAMPLED}
    sys.stderr = open(os.devnull, "w")
    for name in names:
        record = by_name[name]
        complaints, tried = [], 0
        for number in range(min(2, len(record.samples(base_dtype(record))))):
            if fits(record, base_dtype(record), number):
                complaints.append(attempt_as_it_is(record, record.samples(base_dtype(record))[number], run))
            for what, odd in calls(record.samples(base_dtype(record))[number]):
                pipe.send(("trying", name, what))
                complaints.append(attempt(record, what, odd, run))
                tried += 1
        if not tried:
            complaints.append("no odd call was tried")
        pipe.send(("done", name, [complaint for complaint in complaints if complaint]))


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


NAMES = sorted(r.name for r in SAMPLED)


@pytest.mark.parametrize("run", [eagerly, captured])
@pytest.mark.parametrize("start", range(0, len(NAMES), BATCH))
def test_odd_calls(start, run):
    names = NAMES[start:start + BATCH]
    found = survey(names, run)
    assert sorted(found) == names, "some ops were not surveyed"
    bad = {name: complaints for name, complaints in found.items() if complaints}
    assert not bad, "\n".join(f"{name}: {c}" for name, complaints in bad.items() for c in complaints)
