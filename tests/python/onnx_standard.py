"""The tests of the ONNX standard: models with inputs and outputs, as folders on disk.

    .venv/bin/python tests/python/onnx_standard.py FOLDER ... [--failures] [--only PART] [--peer FILE]

FOLDER is searched for `model.onnx`: Debian's `libonnx-testdata`, the data of the `onnx` wheel, or what `tests/python/onnx_cases.py`
writes from the wheel. `--peer` names a file with lines of a folder and `ok`: what another runtime passes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oar
from oar import _C

RELATIVE, ABSOLUTE = 1e-3, 1e-5


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers: numbers, or the bytes of what has a length."""
    at = 0

    def varint() -> int:
        nonlocal at
        number, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        yield key >> 3, message[at : at + size]
        at += size


def kinds(model: bytes, which: int) -> list[bytes]:
    """The types of the inputs (11) or outputs (12) that are no weights."""
    graph = next(value for field, value in fields(model) if field == 7)
    ports = [dict(fields(value)) for field, value in fields(graph) if field == which]
    weights = [dict(fields(value)).get(8) for field, value in fields(graph) if field == 5]
    return [port[2] for port in ports if port[1] not in weights]


def read(content: bytes, kind: bytes) -> Any:
    """A tensor, or a list or None if the file holds a sequence or an optional."""
    which, type_of = next(fields(kind))
    if which not in (4, 9):
        return _C.onnx_tensor(content)
    element = next(value for field, value in fields(type_of) if field == 1)
    if which == 4:  # its tensors, or its sequences
        return [read(value, element) for field, value in fields(content) if field in (3, 5)]
    values = [value for field, value in fields(content) if field in (3, 5)]
    return read(values[0], element) if values else None


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (list, tuple)):
        return None if value is None else [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return value
    kind = value.dtype.name
    if kind in ("bfloat16",) or kind.startswith(("float8", "float4")):
        value = value.cast("float32")
    elif kind in ("int4", "uint4"):
        value = value.cast("int32")
    return value.numpy()


def differs(got: Any, wanted: Any, relative: float, absolute: float) -> str:
    if isinstance(wanted, list) or wanted is None:
        if type(got) is not type(wanted) or (wanted is not None and len(got) != len(wanted)):
            return "has another structure"
        return next((d for g, w in zip(got or [], wanted or []) if (d := differs(g, w, relative, absolute))), "")
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        return f"has the shape {got.shape} instead of {wanted.shape}"
    if got.dtype != wanted.dtype and wanted.dtype.kind not in "OUS":
        return f"is {got.dtype} instead of {wanted.dtype}"
    if wanted.dtype.kind in "OUS":
        return "" if (got == wanted).all() else "has other strings"
    wide = "complex128" if wanted.dtype.kind == "c" else "float64"
    close = np.allclose(got.astype(wide), wanted.astype(wide), rtol=relative, atol=absolute, equal_nan=True)
    return "" if close else f"differs by {np.nanmax(np.abs(got.astype(wide) - wanted.astype(wide)), initial=0):.3g}"


def tolerances(folder: Path) -> tuple[float, float]:
    given = folder / "tolerance"
    if not given.exists():
        return RELATIVE, ABSOLUTE
    relative, absolute = map(float, given.read_text().split())
    return relative, max(absolute, ABSOLUTE)


def run(folder: Path) -> str:
    """Empty if the test passes, else why it does not."""
    try:
        model = oar.onnx.load(folder / "model.onnx")
        content = (folder / "model.onnx").read_bytes()
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = [read(path.read_bytes(), kind) for i, kind in enumerate(kinds(content, 11)) if (path := data / f"input_{i}.pb").exists()]
            results = model(*inputs)
            for i, (result, kind) in enumerate(zip(results, kinds(content, 12), strict=True)):
                wrong = differs(plain(result), plain(read((data / f"output_{i}.pb").read_bytes(), kind)), *tolerances(folder))
                if wrong:
                    return f"output {i} {wrong}"
    except Exception as error:  # any failure of any kind is a result here
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def folders(roots: list[Path]) -> list[Path]:
    return sorted({path.parent for root in roots for path in root.rglob("model.onnx")})


def group(reason: str) -> str:
    return re.sub(r"'[^']*'|\d+(\.\d+)?(e-?\d+)?", "_", reason)[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roots", type=Path, nargs="+")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", type=Path)
    arguments = parser.parse_args()
    chosen = [f for f in folders(arguments.roots) if arguments.only in f.name]
    if arguments.peer:
        passed = {line.split("\t")[0] for line in arguments.peer.read_text().splitlines() if line.endswith("\tok")}
        chosen = [f for f in chosen if str(f) in passed]
    reasons = {folder: run(folder) for folder in chosen}
    failed = {f: r for f, r in reasons.items() if r}
    for reason, count in Counter(group(r) for r in failed.values()).most_common():
        print(f"{count:5} {reason}")
    if arguments.failures:
        for folder, reason in failed.items():
            print(f"{folder.name}: {reason}")
    print(f"{len(chosen) - len(failed)} of {len(chosen)} pass")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
