#!/usr/bin/env python3
"""Puts the pages of `docs/` and the generated reference together in `build/docs`.

A link to a page or a file that does not exist is an error.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import sys
from pathlib import Path

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def dead_links(page: Path, text: str) -> list[str]:
    """The targets of relative links that do not exist."""
    dead = []
    for target in LINK.findall(CODE.sub("", text)):
        path = target.partition("#")[0]
        if path and not re.match(r"[a-z]+:", path) and not (page.parent / path).exists():
            dead.append(target)
    return dead


def examples_by_family(folder: Path) -> dict[str, dict[str, str]]:
    """The examples of the ops, read as the package reads them; it need not be importable."""
    spec = importlib.util.spec_from_file_location("_docs", folder / "__init__.py")
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    return {file.stem: docs.examples_of(file.stem) for file in sorted((folder / "examples").glob("*.txt"))}


def with_examples(page: str, examples: dict[str, str]) -> str:
    """A page of the reference with an example at the end of each op's section."""
    for op, example in examples.items():
        section = rf"(^## {re.escape(op)}\n.*?)(?=^## |\Z)"
        block = f"```pycon\n{example}\n```\n\n"
        page = re.sub(section, lambda found: found[1].rstrip() + "\n\n" + block, page, flags=re.MULTILINE | re.DOTALL)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    args = parser.parse_args()

    out = args.build / "docs"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for root in (args.source / "docs", args.build / "generated" / "docs"):
        if root.is_dir():
            shutil.copytree(root, out, dirs_exist_ok=True)
    for family, examples in examples_by_family(args.source / "python" / "oar" / "_docs").items():
        page = out / "reference" / f"{family}.md"
        page.write_text(with_examples(page.read_text(), examples))

    # A page of docs/ may point at sources, so its links are followed where it was written; a
    # generated one may point at any page, so its links are followed where all pages are.
    pages = {page: page for page in sorted(args.source.glob("*.md"))}
    for page in sorted(out.rglob("*.md")):
        written = args.source / "docs" / page.relative_to(out)
        pages[page] = written if written.exists() else page
    failures = 0
    for page, origin in pages.items():
        text = page.read_text()
        dead = set(dead_links(origin, text))
        if origin != page:
            dead &= set(dead_links(page, text))
        for target in sorted(dead):
            failures += 1
            print(f"{origin}: the link to {target} leads nowhere", file=sys.stderr)
    print(f"docs: {len(pages)} pages, {failures} dead links, in {out}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
