#!/usr/bin/env python3
"""Checks the package's types as a user's editor sees them, with pyright.

What is right in tests/python/typing_cases must pass; in `wrong.py` every line that is marked, and no other, must be
an error. tests/python/test_typing.py asks mypy the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from check_common import ROOT, finish

CASES = ROOT / "tests/python/typing_cases"


def errors_of(path: Path) -> dict[int, str]:
    """The errors in a file by line number. It is checked in another folder, like a user's file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        done = subprocess.run(
            [str(ROOT / ".venv/bin/basedpyright"), "--outputjson", "--pythonpath", str(ROOT / ".venv/bin/python"),
             "--level", "error", str(copy)], cwd=folder, capture_output=True, text=True)
        try:
            found = json.loads(done.stdout)["generalDiagnostics"]
        except (ValueError, KeyError):
            sys.exit(f"basedpyright did not run:\n{done.stdout}{done.stderr}")
    return {entry["range"]["start"]["line"] + 1: entry["message"] for entry in found}


def main() -> None:
    failures = 0
    for path in sorted(CASES.glob("*.py")):
        found = errors_of(path)
        lines = path.read_text(encoding="utf-8").splitlines()
        expected = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
        for number in sorted(expected ^ set(found)):
            failures += 1
            print(f"{path.relative_to(ROOT)}:{number}: {found.get(number, 'should be an error')}", file=sys.stderr)
    finish("types", failures, f"{len(list(CASES.glob('*.py')))} files")


if __name__ == "__main__":
    main()
