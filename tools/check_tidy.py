#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build.

A source that passed is checked again only when it, something that it includes or the configuration has changed
(`tools/check_cache.py`). Sources that changed come first, and --minutes limits the time (`tools/check_changes.py`). Name
files to check only those.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from pathlib import Path

from check_cache import Includes, Passed
from check_changes import add_arguments, run_within
from check_common import ROOT, finish

# clang-tidy has no omp.h, so it reads most code as without OpenMP. The one file that needs the header
# finds the compiler's, after clang's own.
EXTRA = ["-fno-openmp", "-UOAR_USE_OPENMP", "-Wno-unknown-pragmas"]
GCC_ONLY = ("-fvect-cost-model", "-fpch-preprocess", "-fpch-deps", "-Winvalid-pch")


def compile_commands(build: Path) -> list[dict[str, str]]:
    """A command for each source, from a configuration without groups, which uses what `build` has generated."""
    folder = build / "checks/commands"
    subprocess.run(["cmake", "--preset", "release", "-B", str(folder), "-DOAR_GROUPS=OFF"], cwd=ROOT, check=True,
                   capture_output=True)
    text = (folder / "compile_commands.json").read_text()
    for made in ("generated", "codegen", "parameter_server"):
        text = text.replace(f"{folder}/{made}", f"{build}/{made}")
    return json.loads(text)


def commands_for_clang(entries: list[dict[str, str]], build: Path) -> Path:
    """A folder with these commands, without the options that clang does not know."""
    changed = []
    for entry in entries:
        words = shlex.split(entry["command"])
        headers = {i for i, w in enumerate(words) if w.endswith("/cmake_pch.hxx")}  # each after an -include
        command = shlex.join(w for i, w in enumerate(words)
                             if not w.startswith(GCC_ONLY) and not {i, i + 1} & headers)
        changed.append({**entry, "command": command})
    folder = build / "checks"
    (folder / "compile_commands.json").write_text(json.dumps(changed))
    return folder


def compiler_headers(command: str) -> Path:
    """The folder of the compiler's own headers."""
    compiler = shlex.split(command)
    name = next(word for word in compiler if not word.endswith(("ccache", "compile.sh")))
    return Path(subprocess.run([name, "-print-file-name=include"], check=True, capture_output=True,
                               text=True).stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--tool", default=str(ROOT / ".venv/bin/clang-tidy"))
    add_arguments(parser)
    parser.add_argument("files", nargs="*", help="check only these")
    args = parser.parse_args()

    build = ROOT / args.build
    only = {(Path.cwd() / name).resolve() for name in args.files}
    commands: dict[Path, str] = {}  # one of a file that is compiled for several instruction sets will do
    entries = compile_commands(build)
    for entry in entries:
        source = Path(entry["file"])
        if source.is_relative_to(ROOT) and not source.is_relative_to(build) and (not only or source in only):
            commands.setdefault(source, entry["command"].replace(f"{ROOT}/", "").replace("build/checks/commands/", "build/"))

    version = subprocess.run([args.tool, "--version"], check=True, capture_output=True, text=True).stdout
    settings = [(ROOT / name).read_text() for name in (".clang-tidy", "tools/requirements-run.txt")]
    includes = Includes(build)
    passed = Passed("tidy", "\n".join((version, *EXTRA, *settings)), includes)
    waiting = [source for source in commands if not passed.has(source, commands[source])]

    folder = commands_for_clang(entries, build)
    extra = [*EXTRA, "-idirafter", str(compiler_headers(entries[0]["command"]))]

    def tidy(source: Path) -> str:
        done = subprocess.run(
            [args.tool, "--quiet", "-p", str(folder), *[f"--extra-arg={x}" for x in extra], str(source)],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return done.stdout or done.stderr
        passed.add(source, commands[source])
        return ""

    failures, detail = run_within(waiting, tidy, includes, args)
    finish("clang-tidy", failures, f"{len(commands)} sources: {len(commands) - len(waiting)} known to pass, {detail}")


if __name__ == "__main__":
    main()
