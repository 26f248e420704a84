#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build.

A source that passed is looked at again only when it, something that it includes or the
configuration has changed. Name files to look at those only.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from pathlib import Path

from check_common import ROOT, finish, run_all, up_to_date

# clang-tidy brings no omp.h, so it reads most code as it is without OpenMP. The one file that needs the header
# finds the compiler's, after clang's own.
EXTRA = ["-fno-openmp", "-UOAR_USE_OPENMP", "-Wno-unknown-pragmas"]
GCC_ONLY = ("-fvect-cost-model",)


def commands_for_clang(build: Path) -> Path:
    """A folder with the build's commands, without the options that clang does not know."""
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        words = shlex.split(entry["command"])
        entry["command"] = shlex.join(w for w in words if not w.startswith(GCC_ONLY))
    folder = build / "checks"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder


def compiler_headers(build: Path) -> Path:
    """The folder of the compiler's own headers."""
    compiler = shlex.split(json.loads((build / "compile_commands.json").read_text())[0]["command"])
    name = next(word for word in compiler if not word.endswith("ccache"))
    return Path(subprocess.run([name, "-print-file-name=include"], check=True, capture_output=True,
                               text=True).stdout.strip())


def inputs_by_object(build: Path) -> dict[str, list[Path]]:
    """The headers that the last compilation of each object read, as Ninja recorded them."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True,
                          capture_output=True, text=True).stdout
    inputs: dict[str, list[Path]] = {}
    current: list[Path] = []
    for line in text.splitlines():
        if line.startswith("    "):
            current.append(build / line.strip())
        elif ": #deps" in line:
            current = inputs.setdefault(line.split(":")[0], [])
    return inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--tool", default=str(ROOT / ".venv/bin/clang-tidy"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*", help="look at these only")
    args = parser.parse_args()

    build = ROOT / args.build
    inputs = inputs_by_object(build)
    stamps = build / "checks" / "tidy"
    only = {(Path.cwd() / name).resolve() for name in args.files}
    sources = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        if source.is_relative_to(ROOT) and not source.is_relative_to(build):
            if not only or source in only:
                words = shlex.split(entry["command"])
                sources.append((source, words[words.index("-o") + 1]))

    commands = commands_for_clang(build)
    extra = [*EXTRA, "-idirafter", str(compiler_headers(build))]

    def tidy(item: tuple[Path, str]) -> str:
        source, output = item
        stamp = stamps / f"{source.relative_to(ROOT)}.ok"
        read = [source, Path(".clang-tidy"), Path("tools/check_tidy.py")]
        if output in inputs and up_to_date(stamp, [*inputs[output], *read]):
            return ""
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        done = subprocess.run(
            [args.tool, "--quiet", "-p", str(commands), *[f"--extra-arg={x}" for x in extra],
             str(source)], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            return done.stdout or done.stderr
        stamp.touch()
        return ""

    failures = run_all(sources, tidy, args.jobs)
    finish("clang-tidy", failures, f"{len(sources)} sources")


if __name__ == "__main__":
    main()
