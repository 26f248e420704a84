#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build.

A source that passed is checked again only when it, something that it includes or the configuration has changed
(`tools/check_cache.py`). Of the others, those come first that changed since the last run that was green, then those
that include something changed. With --minutes it stops when the time is over and says how many are left; they are
the first ones of the next run. Name files to check only those.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import time
from pathlib import Path

from check_cache import Includes, Passed, cache_folder
from check_common import ROOT, finish, run_all

# clang-tidy has no omp.h, so it reads most code as without OpenMP. The one file that needs the header
# finds the compiler's, after clang's own.
EXTRA = ["-fno-openmp", "-UOAR_USE_OPENMP", "-Wno-unknown-pragmas"]
GCC_ONLY = ("-fvect-cost-model", "-fpch-preprocess", "-Winvalid-pch")
# With no green run on record, what the last commits touched counts as changed.
COMMITS = 20


def commands_for_clang(build: Path) -> Path:
    """A folder with the build's commands, without the options that clang does not know."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        words = shlex.split(entry["command"])
        headers = {i for i, w in enumerate(words) if w.endswith("/cmake_pch.hxx")}  # each after an -include
        entry["command"] = shlex.join(w for i, w in enumerate(words)
                                      if not w.startswith(GCC_ONLY) and not {i, i + 1} & headers)
    folder = build / "checks"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder


def compiler_headers(build: Path) -> Path:
    """The folder of the compiler's own headers."""
    compiler = shlex.split(json.loads((build / "compile_commands.json").read_text())[0]["command"])
    name = next(word for word in compiler if not word.endswith(("ccache", "compile.sh")))
    return Path(subprocess.run([name, "-print-file-name=include"], check=True, capture_output=True,
                               text=True).stdout.strip())


def changed_files(repository: Path) -> set[str]:
    """What differs from the last green run's commit, or, if that is not known here, what the last commits touched."""
    def git(*words: str) -> list[str] | None:
        done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True)
        return done.stdout.splitlines() if done.returncode == 0 else None

    record = cache_folder() / "green"
    commit = record.read_text().strip() if record.exists() else ""
    changed = git("diff", "--name-only", commit) if commit else None
    if changed is None:
        changed = git("log", f"-{COMMITS}", "--name-only", "--format=") or []
    return {*changed, *(git("ls-files", "--others", "--exclude-standard") or []),
            *(git("diff", "--name-only", "HEAD") or [])}


def record_green(repository: Path) -> None:
    """Notes the commit, for the next run's order; a checkout with local changes is not a commit."""
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True, text=True).stdout.strip()

    if not git("status", "--porcelain"):
        (cache_folder() / "green").write_text(git("rev-parse", "HEAD") + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--tool", default=str(ROOT / ".venv/bin/clang-tidy"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("OAR_TIDY_MINUTES") or "inf"),
                        help="start no file after this time (OAR_TIDY_MINUTES); 0 checks none")
    parser.add_argument("--history", type=Path, default=Path(os.environ.get("OAR_HISTORY") or ROOT),
                        help="the repository that knows what changed (OAR_HISTORY), if it is not this one")
    parser.add_argument("--record-green", action="store_true", help="only note that the commit passed every check")
    parser.add_argument("files", nargs="*", help="check only these")
    args = parser.parse_args()

    if args.record_green:
        record_green(args.history)
        return
    start = time.monotonic()
    build = ROOT / args.build
    only = {(Path.cwd() / name).resolve() for name in args.files}
    commands: dict[Path, str] = {}  # one of a file that is compiled for several instruction sets will do
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source.is_relative_to(ROOT) and not source.is_relative_to(build) and (not only or source in only):
            commands.setdefault(source, entry["command"].replace(f"{ROOT}/", ""))

    version = subprocess.run([args.tool, "--version"], check=True, capture_output=True, text=True).stdout
    settings = [(ROOT / name).read_text() for name in (".clang-tidy", "tools/requirements-run.txt")]
    includes = Includes(build)
    passed = Passed("tidy", "\n".join((version, *EXTRA, *settings)), includes)
    waiting = [source for source in commands if not passed.has(source, commands[source])]
    changed = {ROOT / name for name in changed_files(args.history)} if waiting else set()
    waiting.sort(key=lambda source: (source not in changed, not includes.closure(source) & changed))

    folder = commands_for_clang(build)
    extra = [*EXTRA, "-idirafter", str(compiler_headers(build))]
    left = []

    def tidy(source: Path) -> str:
        if time.monotonic() - start > args.minutes * 60 or args.minutes == 0:
            left.append(source)
            return ""
        done = subprocess.run(
            [args.tool, "--quiet", "-p", str(folder), *[f"--extra-arg={x}" for x in extra], str(source)],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return done.stdout or done.stderr
        passed.add(source, commands[source])
        return ""

    failures = run_all(waiting, tidy, args.jobs)
    detail = f"{len(commands)} sources: {len(commands) - len(waiting)} known to pass, {len(waiting) - len(left)} checked"
    if left:
        late = sum(source in changed for source in left)
        detail += f", {len(left)} left for the next run, {late} of them changed"
    finish("clang-tidy", failures, detail)


if __name__ == "__main__":
    main()
