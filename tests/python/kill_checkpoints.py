"""Kills a training run at random moments and lets it go on: ``python kill_checkpoints.py [--kills 50] [--steps 150] [--seed 0]``.

After each kill every checkpoint that is there must be whole, none that was reported may be lost, and the run that was killed over
and over must end with the same bits as one that was not.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

from oar.checkpoint import CheckpointManager, _folder

RUN = pathlib.Path(__file__).with_name("checkpoint_run.py")
_LONGEST = 0.25  # seconds of training before a kill


def _start(folder: str, steps: int, mode: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(RUN), folder, str(steps), *mode], stdout=subprocess.PIPE, text=True, bufsize=1)


def whole_run(steps: int, mode: list[str]) -> str:
    """The last line of a run that nobody disturbs."""
    with tempfile.TemporaryDirectory() as folder:
        process = _start(folder, steps, mode)
        lines = process.communicate()[0].splitlines()
    assert process.returncode == 0, lines
    return lines[-1]


def _wait_until_it_trains(process: subprocess.Popen[str], folder: str) -> list[str]:
    """Until it has said something, or written to the folder: importing takes longer than all the rest."""
    assert process.stdout is not None
    before = set(os.listdir(folder))
    while process.poll() is None:
        ready, _, _ = select.select([process.stdout], [], [], 0.005)
        if ready:
            return [process.stdout.readline()]
        if set(os.listdir(folder)) != before:
            break
    return []


def kill_once(folder: str, steps: int, mode: list[str], draw: random.Random) -> tuple[bool, list[str]]:
    """Whether the run was killed before its end, and its lines."""
    process = _start(folder, steps, mode)
    lines = _wait_until_it_trains(process, folder)
    time.sleep(draw.uniform(0.0, _LONGEST))
    killed = process.poll() is None
    process.send_signal(signal.SIGKILL) if killed else None
    lines += process.communicate()[0].splitlines()
    return killed, lines


def check(folder: str, lines: list[str]) -> int:
    """The last checkpoint; an error if one is damaged or one that was reported is lost."""
    reported = max((int(line.split()[1]) for line in lines if line.startswith(("saved", "restored")) and line[-1:].strip().isdigit()), default=0)
    steps = CheckpointManager(folder).all_steps()
    for step in steps:
        _folder.read_files(folder, step, list(_folder.read_list(folder, step)["files"]))
    assert not [name for name in os.listdir(folder) if name.startswith(".")], os.listdir(folder)
    assert (steps[-1] if steps else 0) >= reported, (steps, reported)
    return steps[-1] if steps else 0


def kill_and_go_on(kills: int, steps: int, mode: list[str], seed: int) -> dict[str, int]:
    """Kills a run so often, and compares its end with that of a run without kills."""
    draw = random.Random(seed)
    counts = {"kills": 0, "with a half-written checkpoint": 0, "checkpoints": 0}
    with tempfile.TemporaryDirectory() as folder:
        lines: list[str] = []
        while counts["kills"] < kills:
            killed, lines = kill_once(folder, steps, mode, draw)
            if not killed:
                break
            counts["kills"] += 1
            counts["with a half-written checkpoint"] += any(name.startswith(".new-") for name in os.listdir(folder))
            counts["checkpoints"] = check(folder, lines)
        else:
            process = _start(folder, steps, mode)
            lines = process.communicate()[0].splitlines()
    wanted = whole_run(steps, mode)
    assert wanted.startswith("digest") and lines[-1] == wanted, (lines[-1:], wanted)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--async", dest="mode", action="store_const", const=["async"], default=[])
    given = parser.parse_args()
    print(kill_and_go_on(given.kills, given.steps, given.mode, given.seed))
