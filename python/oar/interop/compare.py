"""A model before and after its conversion, and in the framework that its format belongs to."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from oar._lazy import np
from oar.interop.any_model import AnyModel

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


def compare(before: AnyModel, after: AnyModel, inputs: list[Any]) -> tuple[list[Difference], list[str]]:
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


def run_elsewhere(model: AnyModel, arrays: list[Any]) -> tuple[str, list[Any]] | str | None:
    """The framework's name and its results; text if it is not installed or fails; None if Oar is the framework."""
    if model.format not in _PEERS:
        return None
    title, modules, run = _PEERS[model.format]
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return title, [np.asarray(array) for array in run(module, model, arrays)]
        except Exception as error:  # whatever another framework raises
            return f"{title} does not run it: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return f"{title} is not installed, so it is not compared with it"


def _run_onnx(module: Any, model: AnyModel, arrays: list[Any]) -> list[Any]:
    session = module.InferenceSession(model.path, providers=["CPUExecutionProvider"])
    return session.run(model.outputs, dict(zip(model.inputs, arrays)))


def _run_tflite(module: Any, model: AnyModel, arrays: list[Any]) -> list[Any]:
    interpreter = module.Interpreter(model_path=model.path)
    ports = interpreter.get_input_details()
    for port, array in zip(ports, arrays):
        interpreter.resize_tensor_input(port["index"], array.shape)
    interpreter.allocate_tensors()
    for port, array in zip(ports, arrays):
        interpreter.set_tensor(port["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(port["index"]) for port in interpreter.get_output_details()]


def _run_paddle(module: Any, model: AnyModel, arrays: list[Any]) -> list[Any]:
    config = module.Config(model.path, os.path.splitext(model.path)[0] + ".pdiparams")
    config.disable_glog_info()
    predictor = module.create_predictor(config)
    for name, array in zip(predictor.get_input_names(), arrays):
        predictor.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(array))
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


_Run = Callable[[Any, AnyModel, list[Any]], list[Any]]
_PEERS: dict[str, tuple[str, tuple[str, ...], _Run]] = {
    "onnx": ("ONNX Runtime", ("onnxruntime",), _run_onnx),
    "tflite": ("TFLite", ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite.python.interpreter"), _run_tflite),
    "paddle": ("PaddlePaddle", ("paddle.inference",), _run_paddle),
    "paddle-pir": ("PaddlePaddle", ("paddle.inference",), _run_paddle),
}
