"""What the check scripts share: the list of files, and running commands side by side."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent


def project_files(*suffixes: str) -> list[Path]:
    """The project's files, tracked or new but not ignored, relative to its root."""
    text = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = sorted({Path(name) for name in text.split("\0") if name})
    return [p for p in paths
            if (not suffixes or p.name.endswith(suffixes)) and (ROOT / p).is_file()]


def run_all(items: list, work: Callable[[object], str], jobs: int) -> int:
    """Calls `work` on each item; it returns what to complain about. Gives the number of failures."""
    failures = 0
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for complaint in pool.map(work, items):
            if complaint:
                failures += 1
                print(complaint.rstrip(), file=sys.stderr, flush=True)
    return failures


def finish(what: str, failures: int, detail: str) -> None:
    """Prints the closing line and ends the process."""
    print(f"{what}: {'ok' if not failures else f'{failures} failed'} ({detail})")
    sys.exit(1 if failures else 0)
