#!/usr/bin/env python3
"""Checks what a library exports and contains, and how large it is.

    tools/check_parts.py full build/lib/liboar.so
    tools/check_parts.py runtime build-deploy/lib/liboar_runtime.so [--most-bytes N] [--tools aarch64-linux-gnu-]

The full library exports no kernel and no rule of an op family. The runtime library contains no function of the tape, of capture
and passes, of samples and references, and of Python.
"""

from __future__ import annotations

import argparse
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from check_common import finish

# Of the full library: what no program outside may call.
INTERNAL = re.compile(r"^(oar::cpu::|oar::\w+_family\(\)|oar::(canonical|simd)::)")
# Of the runtime library: what has no business there, by the names of its classes, namespaces and entry points.
TRAINING = re.compile(
    r"\boar::("
    r"backward|grad\(|OpNode|Node::|History|Engine|VjpCall|JvpCall|BatchCall|vjp::|jvp|vmap|nn::|"
    r"Capture|Builder|Executor|TrainedProgram|Segment|PassContext|for_deployment|optimise|canonical|functionalise|"
    r"Samples|samples::|ShardPlan|ShardRule|plan_of|extension::"
    r")|\bpaddle::|^_?Py[A-Z_]\w*$"
)


def symbols(nm: str, library: Path, *options: str) -> list[str]:
    lines = subprocess.run([nm, "-C", *options, str(library)], check=True, capture_output=True, text=True).stdout
    return [re.sub(r"^[0-9a-f ]*\s*[A-Za-z] ", "", line) for line in lines.splitlines()]


def is_training(symbol: str) -> bool:
    """Whether the function itself, not only a type among its arguments, belongs to training or the compiler."""
    name = re.sub(r"^(vtable for|typeinfo for|typeinfo name for|guard variable for|non-virtual thunk to) ", "", symbol)
    return bool(TRAINING.search(name.split("(", 1)[0] + "(")) or bool(re.match(r"_?Py[A-Z_]", name))


def sizes_by_folder(map_file: Path) -> dict[str, int]:
    """Bytes of code and data in the linked library, by folder of src/oar: from the linker's map."""
    sizes: collections.Counter[str] = collections.Counter()
    # mold: "0xaddress size align path.o:(.text.f)"; GNU ld: " .text.f  0xaddress 0xsize path.o".
    row = re.compile(r"^\s*(?:0x[0-9a-f]+\s+(?P<mold>[0-9]+)\s+\d+\s+|\S+\s+0x[0-9a-f]+\s+0x(?P<ld>[0-9a-f]+)\s+)(?P<path>\S+\.o)\b")
    text = map_file.read_text(errors="replace")
    # GNU ld breaks the line after a long name of a section.
    text = re.sub(r"^ (\.\S+)\n\s+(0x)", r" \1 \2", text, flags=re.MULTILINE)
    for line in text.splitlines():
        if match := row.match(line):
            size = int(match["mold"]) if match["mold"] else int(match["ld"], 16)
            path = match["path"]
            inside = re.search(r"src/oar/(.+)/[^/]+$", path)
            folder = inside.group(1) if inside else "generated" if "generated" in path else "others"
            unit = re.search(r"oar_simd_(\w+)\.dir", path)
            sizes[f"{folder} ({unit.group(1)})" if unit else folder] += size
    return dict(sizes)


def self_test() -> None:
    assert INTERNAL.match("oar::cpu::gemm(float*)") and not INTERNAL.match("oar::relu(oar::Tensor const&)")
    assert is_training("oar::Capture::record(oar::Op const&)") and is_training("vtable for oar::OpNode")
    assert is_training("oar::nn::Linear::forward()") and is_training("PyErr_Occurred")
    assert not is_training("oar::Runner::run_on(std::vector<oar::Tensor>)")
    assert not is_training("oar::Region::vjp(std::vector<bool> const&)") and not is_training("oar::gradual()")


def main() -> None:
    self_test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["full", "runtime"])
    parser.add_argument("library", type=Path)
    parser.add_argument("--most-bytes", type=int, help="fail if the stripped library is larger")
    parser.add_argument("--tools", default="", help="prefix of nm and strip, for other machines")
    options = parser.parse_args()
    nm = options.tools + "nm"
    problems = []
    if options.kind == "full":
        exported = symbols(nm, options.library, "-D", "--defined-only")
        problems += [f"exports {name}" for name in exported if INTERNAL.match(name)]
        about = f"{len(exported)} symbols exported"
    else:
        names = symbols(nm, options.library)
        if len(names) < 1000:
            problems.append("has been stripped: its symbols cannot be read")
        problems += [f"contains {name}" for name in names if is_training(name)]
        exported = symbols(nm, options.library, "-D", "--defined-only")
        about = f"{len(names)} symbols, {len(exported)} exported"
        map_file = options.library.with_suffix(".map")
        if map_file.exists():
            for folder, size in sorted(sizes_by_folder(map_file).items(), key=lambda row: -row[1]):
                print(f"{size:10,} bytes  {folder}")
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run([options.tools + "strip", "-o", stripped.name, str(options.library)], check=True)
        size = Path(stripped.name).stat().st_size
    about += f", {size:,} bytes stripped"
    if options.most_bytes and size > options.most_bytes:
        problems.append(f"has {size:,} bytes stripped; it may have {options.most_bytes:,}")
    for problem in problems[:50]:
        print(f"{options.library}: {problem}", file=sys.stderr)
    finish("parts", len(problems), about)


if __name__ == "__main__":
    main()
