"""Kills a training run at random moments and lets it go on: ``python kill_checkpoints.py [--kills 50] [--steps 600] [--seed 0] [--async]``.

After each kill every checkpoint that is there must be whole, none that was reported may be lost, and the run that was killed over
and over must end with the same bits as one that was not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback

from checkpoint_run import main

import oar
from oar.checkpoint import CheckpointManager, _folder

_LONGEST = 0.4  # seconds before a kill


class Child:
    """A run in a process of its own. It is forked, since importing takes longer than all the rest."""

    def __init__(self, folder: str, steps: int, async_save: bool) -> None:
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours)
            os.dup2(theirs, 1)
            sys.stdout = os.fdopen(theirs, "w", buffering=1)
            _run_and_exit(folder, steps, async_save)
        os.close(theirs)
        self._output = os.fdopen(ours)

    def kill_after(self, seconds: float) -> bool:
        """Whether it was still running."""
        time.sleep(seconds)
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return False
        os.kill(self.pid, signal.SIGKILL)
        return True

    def lines(self) -> list[str]:
        """What it has printed, when it has ended."""
        with self._output:
            printed = self._output.read().splitlines()
        os.waitpid(self.pid, 0)
        return printed


def _run_and_exit(folder: str, steps: int, async_save: bool) -> None:
    try:
        with oar.utils.unique_name.guard():
            main(folder, steps, async_save)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def whole_run(steps: int, async_save: bool) -> str:
    """The last line of a run that nobody disturbs."""
    with tempfile.TemporaryDirectory() as folder:
        return Child(folder, steps, async_save).lines()[-1]


def check(folder: str, lines: list[str]) -> int:
    """The last checkpoint; an error if one is damaged or one that was reported is lost."""
    words = [line.split() for line in lines]
    reported = max((int(line[1]) for line in words if len(line) == 2 and line[0] in ("saved", "restored")), default=0)
    steps = CheckpointManager(folder).all_steps()
    for step in steps:
        _folder.read_files(folder, step, list(_folder.read_list(folder, step)["files"]))
    assert not [name for name in os.listdir(folder) if name.startswith(".")], os.listdir(folder)
    assert (steps[-1] if steps else 0) >= reported, (steps, reported)
    return steps[-1] if steps else 0


def kill_and_go_on(kills: int, steps: int, async_save: bool, seed: int) -> dict[str, int]:
    """Kills a run so often, and compares its end with that of a run without kills."""
    draw = random.Random(seed)
    counts = {"kills": 0, "with a half-written checkpoint": 0, "steps before the last kill": 0}
    with tempfile.TemporaryDirectory() as folder:
        while counts["kills"] < kills:
            child = Child(folder, steps, async_save)
            killed = child.kill_after(draw.uniform(0.0, _LONGEST))
            lines = child.lines()
            if not killed:
                break
            counts["kills"] += 1
            counts["with a half-written checkpoint"] += any(name.startswith(".new-") for name in os.listdir(folder))
            counts["steps before the last kill"] = check(folder, lines)
        else:
            lines = Child(folder, steps, async_save).lines()
    wanted = whole_run(steps, async_save)
    assert wanted.startswith("digest") and lines[-1] == wanted, (lines[-1:], wanted)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--async", dest="async_save", action="store_true")
    given = parser.parse_args()
    print(kill_and_go_on(given.kills, given.steps, given.async_save, given.seed))
