"""Parses schema lines with the library's own parser: compiles it for this machine and runs it.

The program is kept beside the generated files, under a name that holds the digest of its sources.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = [_ROOT / "tools/generate/print_schemas.cpp", _ROOT / "src/oar/ops/core/schema_line.cpp"]
_HEADERS = [_ROOT / "src/oar/base/api.h", _ROOT / "src/oar/ops/core/schema_line.h"]


def _compilers(given: list[str]) -> list[list[str]]:
    """Commands to try in turn. A compiler for another machine is no use: what it writes does not run here."""
    chosen = os.environ.get("CXX_FOR_BUILD")
    if chosen:
        return [[chosen] if shutil.which(chosen) else shlex.split(chosen)]
    return [command for command in ([given] if given else []) + [["c++"], ["g++"], ["clang++"]] if shutil.which(command[0])]


def _build(folder: Path, compiler: list[str]) -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES + _HEADERS)).hexdigest()[:16]
    program = folder / f"print_schemas-{digest}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    tried = []
    # Under another name first: a build that was interrupted leaves nothing that looks whole.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        new = Path(scratch) / program.name
        for command in _compilers(compiler):
            line = [*command, "-std=c++20", "-I", str(_ROOT / "src"), *map(str, _SOURCES), "-o", str(new)]
            try:
                subprocess.run(line, check=True, capture_output=True, text=True)
                subprocess.run([str(new)], check=True, capture_output=True, input="", text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                tried.append(f"{shlex.join(line)}\n{getattr(error, 'stderr', '') or error}")
                continue
            for stale in folder.glob("print_schemas-*"):
                stale.unlink()
            new.replace(program)
            return program
    raise SystemExit("\n".join(["The parser of schemas could not be compiled for this machine.", *tried,
                                "hint: Set CXX_FOR_BUILD to a C++20 compiler whose programs run here."]))


def parse(lines: list[str], folder: Path, compiler: list[str]) -> list[dict]:
    """One dict for each line, with the fields of `Op`; or one with the key ``mistake``."""
    program = _build(folder, compiler)
    run = subprocess.run([str(program)], input="".join(f"{line}\n" for line in lines), capture_output=True, check=True,
                         encoding="utf-8")
    return [json.loads(line) for line in run.stdout.splitlines()]
