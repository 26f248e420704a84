"""The command ``python -m oar.tools.from_torch``."""

from __future__ import annotations

import argparse
import difflib
import io
import sys
import tokenize
from pathlib import Path
from typing import Optional

from oar.tools.from_torch import Converted, convert


def _arguments(argv: Optional[list[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m oar.tools.from_torch", description="Rewrites a PyTorch script to Oar's names. What it could not do goes to stderr.")
    parser.add_argument("file", help="the script, or - for the standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the result; the standard output by default")
    parser.add_argument("--diff", action="store_true", help="print the difference instead of the result")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if there is anything to report")
    parser.add_argument("--annotate", action="store_true", help="put each report into the result too, as a comment on its line")
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> int:
    """Converts a file.

    Returns:
        0; 1 if ``--check`` found something to report, 2 if the file cannot be read.
    """
    options = _arguments(argv)
    try:
        text = sys.stdin.read() if options.file == "-" else _read(options.file)
        made = convert(text, options.annotate)
    except (OSError, UnicodeDecodeError) as error:
        print(f"{options.file}: it cannot be read: {error}", file=sys.stderr)
        return 2
    except SyntaxError as error:
        print(f"{options.file}:{error.lineno}: this is not Python {sys.version_info[0]}.{sys.version_info[1]}: {error.msg}", file=sys.stderr)
        return 2
    for note in made.notes:
        print(f"{options.file}:{note.line}: {note.text}", file=sys.stderr)
    if options.check:
        return 1 if made.notes else 0
    _write(options, text, made)
    return 0


def _read(path: str) -> str:
    data = Path(path).read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def _write(options: argparse.Namespace, text: str, made: Converted) -> None:
    result = made.text
    if options.diff:
        name = options.output or options.file
        result = "".join(difflib.unified_diff(text.splitlines(keepends=True), result.splitlines(keepends=True), options.file, name))
    if options.output and not options.diff:
        Path(options.output).write_bytes(result.encode())
    else:
        sys.stdout.write(result)


if __name__ == "__main__":
    sys.exit(main())
