"""A model before and after its conversion, and in the framework that its format belongs to."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from oar._lazy import np
from oar.interop import _peer
from oar.interop.graph import GraphModel

__all__ = ["Difference", "compare", "run_elsewhere"]


class Difference(NamedTuple):
    """How far two values of an output are apart. ``relative`` is a part of the largest element; infinite where shapes differ."""

    output: str
    runs: str
    largest: float
    difference: float
    relative: float

    def text(self) -> str:
        return (f"{self.output}: {self.runs}: largest {self.largest:.6g}, largest difference {self.difference:.3g}, "
                f"{self.relative:.3g} of the largest")


def difference_of(output: str, runs: str, one: Any, other: Any) -> Difference:
    """Between two arrays; places where both are NaN or the same infinity are equal."""
    if one.shape != other.shape:
        return Difference(output, f"{runs} (shapes {list(one.shape)} and {list(other.shape)})", 0.0, float("inf"), float("inf"))
    a, b = one.astype("float64"), other.astype("float64")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not a.size:
        return Difference(output, runs, 0.0, 0.0, 0.0)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b))
    worst = float("inf") if np.isnan(apart).any() else float(apart.max())
    finite = np.abs(a[np.isfinite(a)])
    largest = float(finite.max()) if finite.size else 0.0
    return Difference(output, runs, largest, worst, worst / largest if largest > 0 else worst)


def compare(before: GraphModel, after: GraphModel, inputs: list[Any]) -> tuple[list[Difference], list[str]]:
    """The differences of all outputs on these inputs, and what could not be compared."""
    first = [tensor.numpy() for tensor in before(*inputs)]
    runs: list[tuple[str, list[Any]]] = []
    notes: list[str] = []
    by_name = dict(zip(before.inputs, inputs))
    given = [by_name[name] for name in after.inputs] if set(after.inputs) <= by_name.keys() else inputs
    runs.append(("before and after", [tensor.numpy() for tensor in after(*given)]))
    for model, when in ((before, "before"), (after, "after")):
        made = run_elsewhere(model, [t.numpy() for t in (inputs if model is before else given)])
        if isinstance(made, str):
            notes.append(f"{when}: {made}")
        elif made is not None:
            runs.append((f"before and {made[0]} on the file {when}", made[1]))
    rows = [difference_of(name, title, a, b) for title, arrays in runs for name, a, b in zip(before.outputs, first, arrays)]
    return rows, notes


def run_elsewhere(model: GraphModel, arrays: list[Any]) -> tuple[str, list[Any]] | str | None:
    """The framework's name and its results; text if it is not installed or fails; None if Oar is the framework."""
    title = _PEERS.get(model.format)
    if title is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = os.path.join(folder, "inputs.npz"), os.path.join(folder, "outputs.npz")
        np.savez(inputs, **{str(i): array for i, array in enumerate(arrays)})
        done = subprocess.run([sys.executable, _peer.__file__, model.format, os.path.abspath(model.path), inputs, outputs, *model.inputs], cwd=folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode == _NOT_INSTALLED:
            return f"{title} is not installed, so it is not compared with it"
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            return f"{title} does not run it: {lines[-1].strip() if lines else f'status {done.returncode}'}"
        made = np.load(outputs)
        return title, [made[str(i)] for i in range(len(made.files))]


_PEERS = {"onnx": "ONNX Runtime", "tflite": "TFLite", "paddle": "PaddlePaddle", "paddle-pir": "PaddlePaddle"}
_NOT_INSTALLED = 3
