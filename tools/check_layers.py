#!/usr/bin/env python3
"""Checks that a folder of `src/oar` includes only from itself and from the folders before it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from check_common import ROOT, finish, project_files

ORDER = ["base", "tensor", "device", "ops", "backend", "formats", "media", "autograd", "nn", "ir", "runtime",
         "compiler", "extension", "distributed", "parameter_server", "planner", "interop", "ocr", "inference", "serving", "cli"]

# For folders with subfolders: which of them may not include which.
APART = {("ops/core", "ops/families"), ("ops/sharding", "ops/families")}

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]oar/([^">]+)[">]', re.MULTILINE)


def room_of(path: str) -> str:
    return "/".join(path.split("/")[:2])


def complaints(path: str, text: str) -> list[str]:
    """What is wrong with the includes of the file `path`, which is relative to `src/oar`."""
    folder, _, rest = path.partition("/")
    if not rest:
        return []  # A header in src/oar itself gathers others for users and may include all.
    if folder not in ORDER:
        return [f"src/oar/{path}: the folder '{folder}' has no place in the order; see {__file__}"]
    found = []
    for match in INCLUDE.finditer(text):
        target, _, rest = match.group(1).partition("/")
        line = text.count("\n", 0, match.start(1)) + 1
        where = f"src/oar/{path}:{line}"
        if not rest:
            found.append(f"{where}: includes oar/{target}, which is for users of the library only")
        elif target not in ORDER:
            found.append(f"{where}: includes oar/{match.group(1)}, of a folder without a place")
        elif ORDER.index(target) > ORDER.index(folder):
            found.append(f"{where}: {folder}/ may not include {target}/, which is above it")
        elif (room_of(path), room_of(match.group(1))) in APART:
            found.append(f"{where}: {room_of(path)}/ may not include {room_of(match.group(1))}/, which is above it")
    return found


def table_complaints(page: str, folders: set[str]) -> list[str]:
    """What is wrong with the table of folders in docs/architecture.md, which is the only one."""
    listed = re.findall(r"^\| \[`(\w+)/`\]\(\.\./src/oar/", page, re.MULTILINE)
    wanted = [folder for folder in ORDER if folder in folders]
    return [] if listed == wanted else [f"docs/architecture.md: the folders should be {wanted}, not {listed}"]


def self_test() -> None:
    def wrong(path: str, *includes: str) -> int:
        return len(complaints(path, "".join(f'#include "{name}"\n' for name in includes)))

    assert wrong("ops/add.cpp", "oar/base/error.h", "oar/ops/gen/add.h", "oar/tensor/dim.h") == 0
    assert wrong("ops/add.cpp", "oar/autograd/tape.h") == 1
    assert wrong("base/log.h", "oar/tensor/dim.h", "oar/ops/def.h") == 2
    assert wrong("backend/cpu/add.cpp", "oar/backend/cpu/loop.h", "oar/ops/def.h") == 0
    assert wrong("compiler/passes/fuse.cpp", "oar/ir/program.h", "oar/runtime/plan.h") == 0
    assert wrong("runtime/lower.cpp", "oar/ir/program.h", "oar/compiler/passes/pass.h") == 1
    assert wrong("cli/main.cpp", "oar/serving/http.h", "vector") == 0
    assert wrong("oar.h", "oar/cli/main.h") == 0
    assert wrong("ops/add.cpp", "oar/oar.h") == 1
    assert wrong("misc/add.cpp") == 1
    assert wrong("ops/core/run.cpp", "oar/ops/families/window.h", "oar/ops/gen/add.h", "oar/ops/sharding/plan.h") == 1
    assert wrong("ops/families/conv.cpp", "oar/ops/families/window.h", "oar/ops/core/run.h") == 0
    rows = "| [`base/`](../src/oar/base/README.md) | a |\n| [`ops/`](../src/oar/ops/README.md) | b |\n"
    assert table_complaints(rows, {"base", "ops"}) == []
    assert len(table_complaints(rows, {"base", "ops", "cli"})) == 1
    assert complaints("base/a.h", '\n#  include <oar/ir/b.h>\n')[0].startswith("src/oar/base/a.h:2:")


def main() -> None:
    self_test()
    root = Path("src/oar")
    files = [p for p in project_files(".h", ".cpp", ".inc") if p.is_relative_to(root)]
    folders = {path.relative_to(root).parts[0] for path in files if len(path.relative_to(root).parts) > 1}
    wrong_table = table_complaints((ROOT / "docs/architecture.md").read_text(), folders)
    for complaint in wrong_table:
        print(complaint, file=sys.stderr)
    failures = len(wrong_table)
    for path in files:
        for complaint in complaints(str(path.relative_to(root)), (ROOT / path).read_text()):
            failures += 1
            print(complaint, file=sys.stderr)
    finish("layers", failures, f"{len(files)} files")


if __name__ == "__main__":
    main()
