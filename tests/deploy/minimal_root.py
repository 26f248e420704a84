#!/usr/bin/env python3
"""Runs a saved model where there is nothing else: in a root folder with the deployed library, oar_run, the C and C++ libraries and the model.

    tests/deploy/minimal_root.py build-deploy --model build/quickstart

There is no shell, no Python, no /proc, /dev or /etc, and no variable of the environment. The model is read-only. oneDNN is there in the first run and not
in the second. Changing the root needs the right to (root, or user namespaces); without it the script says so and does nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CHROOT, UNSHARE = shutil.which("chroot") or "/usr/sbin/chroot", shutil.which("unshare") or "/usr/bin/unshare"
CHANGES = ([CHROOT], [UNSHARE, "--user", "--map-root-user", CHROOT])


def libraries(binary: Path) -> set[Path]:
    """What the loader needs for it, itself included."""
    listed = subprocess.run(["ldd", str(binary)], check=True, capture_output=True, text=True).stdout
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        sys.exit(f"{binary} needs {', '.join(missing)}, which this machine does not have.")
    return {Path(path) for path in re.findall(r"(?:=> |^\s+)(/.+) \(0x[0-9a-f]+\)$", listed, flags=re.MULTILINE)}


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source.resolve(), target)


def make_root(build: Path, model: Path, root: Path) -> None:
    """The layout of an installation, /bin and /lib, and everything else where this machine has it."""
    own = {"oar_run": build / "bin" / "oar_run", "liboar_runtime.so": build / "lib" / "liboar_runtime.so", "libdnnl.so.3": build / "lib" / "libdnnl.so.3"}
    for name, path in own.items():
        if path.exists():
            copy(path, root / ("bin" if name == "oar_run" else "lib") / name)
            for needed in libraries(path):
                if needed.name not in own:
                    copy(needed, root / str(needed)[1:])
    for name in ("digits.pdmodel", "digits.pdiparams", "images.npy"):
        copy(model / name, root / "model" / name)
        (root / "model" / name).chmod(0o444)
    (root / "made").mkdir()


def can_change_root(root: Path) -> list[str] | None:
    for change in CHANGES:
        if Path(change[0]).exists() and subprocess.run([*change, str(root), "/bin/oar_run", "--help"], capture_output=True).returncode == 0:
            return change
    return None


def inside(change: list[str], root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*change, str(root), "/bin/oar_run", *arguments], capture_output=True, text=True, env={}, timeout=300)


def check(change: list[str], root: Path, model: Path) -> int:
    done = inside(change, root, "/model/digits", "--input", "image=/model/images.npy", "--output", "digit=/made/digit.npy")
    if done.returncode != 0:
        sys.exit(f"oar_run ended with {done.returncode} in the minimal root: {done.stdout}{done.stderr}")
    made, expected = np.load(root / "made" / "digit.npy"), np.load(model / "digit.npy")
    if not np.array_equal(made, expected):
        sys.exit(f"In the minimal root {int((made != expected).sum())} of {expected.size} digits differ from Python's.")
    absent = inside(change, root, "/model/nothing")
    if absent.returncode != 1 or "nothing" not in absent.stderr:
        sys.exit(f"A missing model ends with {absent.returncode} in the minimal root and says: {absent.stdout}{absent.stderr}")
    return expected.size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder of the deployed build")
    parser.add_argument("--model", type=Path, required=True, help="the folder that the quickstart wrote")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_root(options.build, options.model, root)
        sizes = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
        change = can_change_root(root)
        if change is None:
            print("minimal root: skipped, this process may not change its root (it needs to be root, or user namespaces)")
            return
        count = check(change, root, options.model)
        with_onednn = (root / "lib" / "libdnnl.so.3").exists()
        if with_onednn:
            os.unlink(root / "lib" / "libdnnl.so.3")
            check(change, root, options.model)
        print(f"minimal root: {count} digits as in Python, {len(sizes)} files, {sum(sizes):,} bytes"
              f"{', with oneDNN and without it' if with_onednn else ''}")


if __name__ == "__main__":
    main()
