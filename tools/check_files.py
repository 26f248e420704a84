#!/usr/bin/env python3
"""Checks every file of the project: its length, and that it names no path of one machine."""

from __future__ import annotations

import re
import sys

from check_common import ROOT, finish, project_files

CODE = (".cpp", ".h", ".inc", ".py", ".sh", ".cmake")
LONG, TOO_LONG = 400, 1000

# A home folder or a mount point means that the text works on its writer's machine only.
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|root|Users|work|mnt|scratch)/[\w.-]+")
# Nor may the project depend on anything outside it.
OUTSIDE = re.compile(r"(?:\.\./)+shared/")


def main() -> None:
    failures = 0
    files = project_files()
    for path in files:
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue  # A binary file.
        if path.name.endswith(CODE):
            lines = text.count("\n")
            if lines > TOO_LONG:
                failures += 1
                print(f"{path}: {lines} lines; past {TOO_LONG} it is two files", file=sys.stderr)
            elif lines > LONG:
                print(f"{path}: {lines} lines, more than {LONG}; can it be divided?")
        for pattern in (MACHINE_PATH, OUTSIDE):
            for match in pattern.finditer(text):
                failures += 1
                line = text.count("\n", 0, match.start()) + 1
                print(f"{path}:{line}: {match.group()} exists on one machine only", file=sys.stderr)
    finish("files", failures, f"{len(files)} files")


if __name__ == "__main__":
    main()
