"""Generates C++ functions and reference pages from the op records.

Writes into the build tree only, and only files whose content changed.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cpp  # noqa: E402
import docs  # noqa: E402
import kernels  # noqa: E402
import schema  # noqa: E402


def write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=Path, required=True, help="folder of the op families")
    parser.add_argument("--kernels", type=Path, nargs="+", required=True, help="folders of CPU kernels")
    parser.add_argument("--without", default="$^", help="files of families and kernels to leave out: a regular expression")
    parser.add_argument("--without-kernels", default="$^", help="files of kernels to leave out: a regular expression")
    parser.add_argument("--out", type=Path, required=True, help="where generated files go")
    parser.add_argument("--compiler", nargs="*", default=[], help="of C++, whose programs run on this machine")
    options = parser.parse_args()

    families = schema.read_all(options.ops, options.out / "host", options.compiler)
    gen = options.out / "oar/ops/gen"
    for family, ops in families.items():
        write(gen / f"{family}.h", cpp.header(family, ops))
        write(gen / f"{family}.gen.cpp", cpp.source(family, ops))
    write(gen / "all.h", cpp.all_header(families))
    write(gen / "families.gen.cpp", cpp.families_source(
        [f for f in families if not re.search(options.without, str(options.ops / f"{f}.cpp"))]))
    for stale in gen.glob("*"):
        stem = stale.name.split(".")[0]
        if stem not in families and stem not in ("all", "families"):
            stale.unlink()
    write(options.out / "oar/backend/cpu/gen/kernel_lists.h", kernels.header(
        options.kernels, f"{options.without}|{options.without_kernels}"))
    for name, text in docs.pages(families).items():
        write(options.out / "docs/reference" / name, text)


if __name__ == "__main__":
    main()
