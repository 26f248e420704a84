#!/usr/bin/env python3
"""Checks that each header compiles alone, without a warning.

A header that passed is looked at again only when it or something that it includes has changed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sysconfig
from pathlib import Path

from check_common import ROOT, finish, project_files, run_all, up_to_date


def inputs_of(depfile: Path) -> list[Path]:
    """The files that a dependency file of the compiler lists."""
    try:
        text = depfile.read_text().replace("\\\n", " ")
    except FileNotFoundError:
        return [Path("/missing")]
    words = re.findall(r"(?:\\ |\S)+", text)  # a space within a path has a backslash
    return [Path(word.replace("\\ ", " ")) for word in words if not word.endswith(":")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder, for generated headers")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()

    build = ROOT / args.build
    command = [args.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               "-Wno-missing-field-initializers",
               "-I", "src", "-I", str(build / "generated"), "-I", "python",
               "-isystem", sysconfig.get_paths()["include"],
               "-isystem", str(ROOT / ".venv" / "include"),  # of libraries from the package registry
               "-x", "c++", "-"]
    stamps = build / "checks" / "headers"

    def compile_alone(header: Path) -> str:
        depfile = stamps / f"{header}.d"
        stamp = stamps / f"{header}.ok"
        if up_to_date(stamp, [*inputs_of(depfile), Path("tools/check_headers.py")]):
            return ""
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        name = os.path.relpath(header, "src" if header.is_relative_to("src") else "python")
        done = subprocess.run([*command, "-MMD", "-MF", str(depfile)], cwd=ROOT, text=True,
                              input=f'#include "{name}"\n', capture_output=True)
        if done.returncode:
            return f"{header} does not compile alone:\n{done.stderr}"
        stamp.touch()
        return ""

    headers = [p for p in project_files(".h")
               if p.is_relative_to("src/oar") or p.is_relative_to("python/bindings")]
    failures = run_all(headers, compile_alone, args.jobs)
    finish("headers", failures, f"{len(headers)} headers")


if __name__ == "__main__":
    main()
