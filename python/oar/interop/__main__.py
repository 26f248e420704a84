"""``oar convert``: ``python -m oar.interop SOURCE TARGET``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from oar.interop import conversion, files
from oar.interop.compare import Difference, compare

_TOLERANCE = 1e-4


def _shape(text: str) -> tuple[str, list[int]]:
    name, _, sizes = text.rpartition("=")
    try:
        return name, [int(size) for size in sizes.split(",")] if sizes else []
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write NAME=1,3,224,224") from None


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("oar convert", description="Convert a model, or a file of weights, to another format.")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--input-shape", type=_shape, action="append", default=[], metavar="NAME=1,3,224,224")
    parser.add_argument("--weights")
    parser.add_argument("--method", default="forward")
    parser.add_argument("--tolerance", type=float, default=_TOLERANCE)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(words)


def _shapes(given: list[tuple[str, list[int]]], source: str, weights: str | None, method: str) -> dict[str, list[int]]:
    """By name; a shape without one is that of the only input."""
    if all(name for name, _ in given):
        return dict(given)
    inputs = files.load(source, weights, method).inputs
    if len(inputs) != 1:
        raise ValueError(f"[convert] --input-shape needs the name of an input: {', '.join(inputs)}.")
    return {name or inputs[0]: sizes for name, sizes in given}


def _rounded(row: Difference) -> dict[str, Any]:
    finite = row.difference < float("inf")
    return {**row._asdict(), "difference": row.difference if finite else None, "relative": row.relative if finite else None}


def main(words: list[str] | None = None) -> int:
    """Converts, compares if that is wanted, and returns the status: 1 if a difference is too large."""
    given = _arguments(words)
    shapes = _shapes(given.input_shape, given.source, given.weights, given.method)
    done = conversion.convert(given.source, given.target, weights=given.weights, method=given.method, input_shapes=shapes)
    rows: list[Difference] = []
    notes: list[str] = []
    if given.compare and done.source.use == "model" and files.guess(given.target).use == "model":
        before = files.load(given.source, given.weights, given.method)
        rows, notes = compare(before, files.load(given.target), conversion.example_inputs(before, shapes))
    elif given.compare:
        notes.append("weights are copied, so there is nothing to compare")
    large = [row for row in rows if not row.relative <= given.tolerance]
    if given.json:
        print(json.dumps({"source": done.source.path, "format": done.source.format, "target": done.target, "calls": done.calls,
                          "tensors": done.tensors, "bytes": done.bytes, "differences": [_rounded(row) for row in rows], "notes": notes}))
        return 1 if large else 0
    calls = f"{done.calls} calls, " if done.calls else ""
    print(f"{done.source.path} ({done.source.format}) -> {done.target}: {calls}{done.tensors} tensors, {done.bytes} bytes")
    for line in [row.text() for row in rows] + notes:
        print(line)
    for row in large:
        print(f"{row.output}: {row.runs}: {row.relative:.3g} is more than --tolerance {given.tolerance:g}")
    return 1 if large else 0


def _run() -> int:
    try:
        return main()
    except (ValueError, RuntimeError, OSError, NotImplementedError) as error:
        print(f"oar: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(_run())
