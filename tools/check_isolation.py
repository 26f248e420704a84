#!/usr/bin/env python3
"""Objects compiled for a newer instruction set than the library's must not offer code to the rest of it: the linker
keeps one copy of an inline function, and that one would crash older machines.

Looks at every object of build/ whose path names AVX-512 or AMX: no weak symbol, and nothing exported but data.
"""

import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build"


def main():
    objects = [p for p in (BUILD / "CMakeFiles").rglob("*.o") if re.search("avx512|amx", str(p.relative_to(BUILD)))]
    if not objects:
        print("check_isolation: no objects for AVX-512 or AMX in build/; nothing to check")
        return 0
    bad = 0
    for path in objects:
        for line in subprocess.run(["nm", "-C", str(path)], capture_output=True, text=True, check=True).stdout.splitlines():
            kind, name = line[17:].split(" ", 1)
            if kind in "WwVvuiT":
                print(f"{path.relative_to(BUILD)}: {name} is open to the linker ({kind})")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
