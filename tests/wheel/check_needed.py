#!/usr/bin/env python3
"""Checks that each library which a wheel's programs need is in it or on every machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# The libraries that PEP 600 lets a wheel take from the machine, as far as they could matter here.
BASELINE = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2",
            "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libz.so.1"}


def dynamic(path: Path) -> tuple[set[str], list[str]]:
    """The libraries that an ELF file needs, and where it looks for them."""
    text = subprocess.run(["readelf", "-d", "-W", str(path)], check=True, capture_output=True,
                          text=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    paths = [p for run in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text) for p in run.split(":")]
    return needed, paths


def main() -> None:
    failures = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        with zipfile.ZipFile(sys.argv[1]) as wheel:
            wheel.extractall(root)
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            with path.open("rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            count += 1
            name = path.relative_to(root)
            needed, run_paths = dynamic(path)
            for run_path in run_paths:
                if not run_path.startswith("$ORIGIN"):
                    failures.append(f"{name} looks for libraries in {run_path}")
            for library in sorted(needed - BASELINE):
                places = [Path(str(p).replace("$ORIGIN", str(path.parent))) for p in run_paths]
                found = [p / library for p in places if (p / library).is_file()]
                if not any(p.resolve().is_relative_to(root) for p in found):
                    failures.append(f"{name} needs {library}, which the wheel does not contain")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"needed libraries: {'ok' if not failures else 'failed'} ({count} binaries)")
    sys.exit(1 if failures or not count else 0)


if __name__ == "__main__":
    main()
