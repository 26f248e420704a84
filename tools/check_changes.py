"""What changed since the last run in which every check passed, and how long a check may take.

Checks that compile cannot read every file each time where the machine is new and its cache empty. They read what changed
first, then what includes something changed, and stop when the time is over; the rest is first in the next run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path
from typing import Callable

from check_cache import Includes, cache_folder
from check_common import ROOT, run_all

# With no green run on record, what the last commits touched counts as changed.
COMMITS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("OAR_CHECK_MINUTES") or "inf"),
                        help="start no file after this time (OAR_CHECK_MINUTES); 0 checks none")
    parser.add_argument("--history", type=Path, default=Path(os.environ.get("OAR_HISTORY") or ROOT),
                        help="the repository that knows what changed (OAR_HISTORY), if it is not this one")


def changed_files(repository: Path) -> set[Path]:
    """What differs from the last green run's commit, or, if that is not known here, what the last commits touched."""
    def git(*words: str) -> list[str] | None:
        done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else None

    record = cache_folder() / "green"
    commit = record.read_text().strip() if record.exists() else ""
    changed = git("diff", "--name-only", commit) if commit else None
    if changed is None:
        changed = git("log", f"-{COMMITS}", "--name-only", "--format=") or []
    names = {*changed, *(git("ls-files", "--others", "--exclude-standard") or []),
             *(git("diff", "--name-only", "HEAD") or [])}
    return {ROOT / name for name in names}


def record_green(repository: Path) -> None:
    """Notes the commit, for the next run's order; a checkout with local changes is not a commit."""
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True, text=True).stdout.strip()

    if not git("status", "--porcelain"):
        (cache_folder() / "green").write_text(git("rev-parse", "HEAD") + "\n")


def run_within(waiting: list[Path], work: Callable[[Path], str], includes: Includes,
               args: argparse.Namespace) -> tuple[int, str]:
    """Calls `work` on each file, those that changed first. Gives the number of failures and what to say of the rest."""
    start = time.monotonic()
    changed = changed_files(args.history) if waiting else set()
    order = sorted(waiting, key=lambda path: (path not in changed, not includes.closure(path) & changed))
    left = []

    def work_in_time(path: Path) -> str:
        if time.monotonic() - start > args.minutes * 60 or args.minutes == 0:
            left.append(path)
            return ""
        return work(path)

    failures = run_all(order, work_in_time, args.jobs)
    detail = f"{len(waiting) - len(left)} checked"
    if left:
        late = sum(path in changed for path in left)
        detail += f", {len(left)} left for the next run, {late} of them changed"
    return failures, detail


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Notes that the commit passed every check.")
    add_arguments(parser)
    record_green(parser.parse_args().history)
