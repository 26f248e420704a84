#!/usr/bin/env python3
"""Puts together `build/python/oar`, the package that a developer imports.

It consists of links into `python/oar`, the generated Python files, the headers and the library, in
the layout that a wheel has. The extension `_C` is written there by the linker. Links that lead
nowhere any more are removed. A run that finds everything in place changes nothing.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def link(target: Path, at: Path) -> None:
    """Makes `at` a relative link to `target`, unless it is one already."""
    text = os.path.relpath(target, at.parent)
    if at.is_symlink():
        if os.readlink(at) == text:
            return
        at.unlink()
    elif at.exists():
        raise SystemExit(f"{at} is in the way: it should be a link to {target}. Remove it.")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(text)


def link_tree(source: Path, at: Path, wanted: set[Path], suffixes: tuple[str, ...] = ()) -> None:
    """Links every file under `source` to the same place under `at`."""
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if not suffixes or name.endswith(suffixes):
                path = at / os.path.relpath(os.path.join(folder, name), source)
                link(Path(folder) / name, path)
                wanted.add(path)


def remove_leftovers(root: Path, wanted: set[Path]) -> None:
    """Removes links that are not wanted, and folders that hold nothing but a cache."""
    for folder, _, files in os.walk(root, topdown=False):
        here = Path(folder)
        for name in files:
            path = here / name
            if path.is_symlink() and path not in wanted:
                path.unlink()
        rest = os.listdir(here)
        if rest == ["__pycache__"]:
            for name in os.listdir(here / "__pycache__"):
                (here / "__pycache__" / name).unlink()
            (here / "__pycache__").rmdir()
            rest = []
        if not rest and here != root:
            here.rmdir()


def stage(source: Path, build: Path) -> None:
    package = build / "python" / "oar"
    package.mkdir(parents=True, exist_ok=True)
    wanted: set[Path] = set()
    link_tree(source / "python" / "oar", package, wanted)
    link_tree(build / "generated" / "python", package, wanted)
    for root in (source / "src", build / "generated"):
        link_tree(root / "oar", package / "include" / "oar", wanted, (".h", ".inc"))
    names = ["lib/liboar.so", "bin/oar"]
    # Loaded from the folder of liboar.so, if they are there.
    optional = ("lib/libdnnl.so.3", "lib/liboar_codegen.so", "lib/liboar_gloo.so", "lib/liboar_mpi.so",
                "lib/liboar_parameter_server.so")
    names += [name for name in optional if (build / name).exists()]
    for name in names:
        link(build / name, package / name)
        wanted.add(package / name)
    remove_leftovers(package, wanted)


def point_venv_at(source: Path, build: Path) -> None:
    """Lets the project's environment import the staged package."""
    venv = source / ".venv"
    if not (venv / "bin" / "python").exists():
        return
    text = f"{build / 'python'}\n"
    for site in venv.glob("lib/python3*/site-packages"):
        path = site / "oar-dev.pth"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="the root of the repository")
    parser.add_argument("--build", type=Path, required=True, help="the build folder")
    args = parser.parse_args()
    source, build = args.source.absolute(), args.build.absolute()
    stage(source, build)
    if build == source / "build":
        point_venv_at(source, build)


if __name__ == "__main__":
    main()
