"""Writes the tests of operators that the `onnx` wheel generates as folders, and notes which of them ONNX Runtime passes.

    python onnx_cases.py FOLDER      # in an environment with onnx and onnxruntime
    .venv/bin/python tests/python/onnx_standard.py FOLDER --peer FOLDER/onnxruntime.tsv

It needs nothing of Oar, whose environment may have neither package.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def written(value: Any, kind: onnx.TypeProto, name: str) -> bytes:
    """A value as the message that its type asks for."""
    if isinstance(value, onnx.TensorProto | onnx.SequenceProto | onnx.OptionalProto):
        return value.SerializeToString()
    which = kind.WhichOneof("value")
    if which == "optional_type":
        element = kind.optional_type.elem_type.WhichOneof("value")
        holds = {"tensor_type": np.ndarray, "sequence_type": list}[element]
        return numpy_helper.from_optional(value, name, None if value is not None else holds).SerializeToString()
    if which == "sequence_type":
        return numpy_helper.from_list(list(value), name).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


def write_case(case: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "tolerance").write_text(f"{case.rtol} {case.atol}")
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        for what, values, ports in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for k, (value, port) in enumerate(zip(values, ports)):
                (data / f"{what}_{k}.pb").write_bytes(written(value, port.type, port.name))


def close(got: Any, wanted: Any, case: Any) -> bool:
    if isinstance(wanted, list) or wanted is None:
        same = isinstance(got, list) == isinstance(wanted, list) and len(got or []) == len(wanted or [])
        return same and all(close(g, w, case) for g, w in zip(got or [], wanted or []))
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return got.dtype.kind in "OUS" and wanted.dtype.kind in "OUS" and got.shape == wanted.shape and bool((got == wanted).all())
    if wanted.dtype.kind in "OUS":
        return bool((got == wanted).all())
    wide = "complex128" if wanted.dtype.kind == "c" else "float64"
    return np.allclose(got.astype(wide), wanted.astype(wide), rtol=case.rtol, atol=max(case.atol, 1e-5), equal_nan=True)


def plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    return numpy_helper.to_optional(value) if isinstance(value, onnx.OptionalProto) else value


def fed(value: Any, kind: onnx.TypeProto) -> Any:
    """NumPy has no type of its own for bfloat16 and for 8 and 4 bits, so ONNX Runtime must be told what these are."""
    value = plain(value)
    if kind.WhichOneof("value") != "tensor_type":
        return value
    value = np.asarray(value)
    known = value.dtype.kind in "OUSb" or value.dtype in map(np.dtype, "bBhHiIlLqQefdFD")
    return value if known else onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(value, kind.tensor_type.elem_type)


def results_of(session: Any, given: dict[str, Any]) -> list[Any]:
    if not any(isinstance(value, onnxruntime.OrtValue) for value in given.values()):
        return session.run(None, given)
    values = {name: v if isinstance(v, onnxruntime.OrtValue) else onnxruntime.OrtValue.ortvalue_from_numpy(v) for name, v in given.items()}
    return [value.numpy() for value in session.run_with_ort_values(None, values)]


def passes(case: Any) -> str:
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for inputs, outputs in case.data_sets:
            given = {port.name: fed(value, port.type) for port, value in zip(case.model.graph.input, inputs)}
            if not all(close(r, plain(w), case) for r, w in zip(results_of(session, given), outputs)):
                return "differs"
    except Exception as error:  # any failure of any kind is a result here
        return f"{type(error).__name__} {' '.join(str(error).split())[:200]}"
    return "ok"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    root = parser.parse_args().folder
    warnings.simplefilter("ignore")
    rows = []
    for case in collect_testcases(None):
        folder = root / case.name
        try:
            write_case(case, folder)
        except Exception as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            continue
        rows.append((str(folder), passes(case)))
    (root / "onnxruntime.tsv").write_text("".join(f"{folder}\t{result}\n" for folder, result in rows))
    print(f"{sum(result == 'ok' for _, result in rows)} of {len(rows)} pass in ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()
