#!/usr/bin/env python3
"""Checks that each header compiles alone, without a warning.

A header that passed is checked again only when it, something that it includes, the compiler or this script has
changed (`tools/check_cache.py`). Headers that changed come first, and --minutes limits the time (`tools/check_changes.py`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sysconfig
from pathlib import Path

from check_cache import Includes, Passed
from check_changes import add_arguments, run_within
from check_common import ROOT, finish, project_files


LLVM = Path("/usr/lib/llvm-19/include")  # as cmake/codegen.cmake looks for it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder, for generated headers")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    add_arguments(parser)
    args = parser.parse_args()

    build = ROOT / args.build
    options = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
               "-Wno-psabi"]  # the build names the instruction set, whose vectors this is about
    command = [args.compiler, *options, "-I", "src", "-I", str(build / "generated"), "-I", "python",
               "-isystem", sysconfig.get_paths()["include"],
               "-isystem", str(ROOT / ".venv" / "include"),  # of libraries from the package registry
               "-isystem", str(LLVM), "-isystem", str(build / "parameter_server"),  # generated messages
               "-x", "c++", "-"]
    version = subprocess.run([args.compiler, "--version"], check=True, capture_output=True, text=True).stdout
    includes = Includes(build)
    passed = Passed("headers", "\n".join((version, *options)), includes)

    def compile_alone(header: Path) -> str:
        name = os.path.relpath(header, ROOT / ("src" if header.is_relative_to(ROOT / "src") else "python"))
        done = subprocess.run(command, cwd=ROOT, text=True, input=f'#include "{name}"\n', capture_output=True)
        if done.returncode:
            return f"{header.relative_to(ROOT)} does not compile alone:\n{done.stderr}"
        passed.add(header)
        return ""

    headers = [ROOT / p for p in project_files(".h")
               if p.is_relative_to("src/oar") or p.is_relative_to("python/bindings")]
    if not LLVM.exists():
        headers = [h for h in headers if not h.is_relative_to(ROOT / "src/oar/compiler/codegen/llvm")]
    if not (build / "parameter_server").exists():
        headers = [h for h in headers if not h.is_relative_to(ROOT / "src/oar/parameter_server")]
    waiting = [header for header in headers if not passed.has(header)]
    failures, detail = run_within(waiting, compile_alone, includes, args)
    finish("headers", failures, f"{len(headers)} headers: {len(headers) - len(waiting)} known to pass, {detail}")


if __name__ == "__main__":
    main()
