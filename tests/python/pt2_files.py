"""Writes small archives of torch.export for tests: a graph as JSON and weights, in a zip archive."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np

DTYPES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bool": 12}


class Ref(str):
    """The name of a value: a tensor, or a size if it begins with ``sym``."""


def argument(value: Any) -> dict[str, Any]:
    """An argument as archives have it."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, Ref):
        return {"as_sym_int": {"as_name": value}} if value.startswith("sym") else {"as_tensor": {"name": value}}
    if isinstance(value, np.dtype):
        return {"as_scalar_type": DTYPES[value.name]}
    if isinstance(value, list):
        if any(isinstance(v, Ref) and v.startswith("sym") for v in value):
            return {"as_sym_ints": [argument(v)["as_sym_int"] if isinstance(v, Ref) else {"as_int": v} for v in value]}
        if any(isinstance(v, Ref) for v in value) and None in value:
            return {"as_optional_tensors": [argument(v) for v in value]}
        if value and isinstance(value[0], Ref):
            return {"as_tensors": [{"name": v} for v in value]}
        return {"as_floats" if any(isinstance(v, float) for v in value) else "as_ints": value}
    kinds = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
    if isinstance(value, float) and not np.isfinite(value):
        value = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        return {"as_float": value}
    return {kinds[type(value)]: value}


def node(target: str, inputs: dict[str, Any], *outputs: str, listed: bool = False) -> dict[str, Any]:
    """A call of ``aten.target``, or of ``_operator.…``."""
    full = target if target.startswith(("_operator", "torch.")) else f"torch.ops.aten.{target}"
    results = [{"as_sym_int": {"as_name": o}} if o.startswith("sym") else {"as_tensor": {"name": o}} for o in outputs]
    if listed:
        results = [{"as_tensors": [{"name": o} for o in outputs]}]
    given = [{"name": name, "arg": argument(value), "kind": 1} for name, value in inputs.items()]
    return {"target": full, "inputs": given, "outputs": results, "metadata": {}, "name": outputs[0] if outputs else target}


def meta(shape: Any, dtype: str = "float32", strides: Any = None, offset: int = 0) -> dict[str, Any]:
    sizes = [{"as_expr": {"expr_str": f"s{i}", "hint": {"as_int": 2}}} if s == -1 else {"as_int": s} for i, s in enumerate(shape)]
    steps = strides or [int(np.prod([max(s, 1) for s in shape[i + 1:]])) for i in range(len(shape))]
    return {"dtype": DTYPES[dtype], "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": [{"as_int": int(s)} for s in steps], "storage_offset": {"as_int": offset}, "layout": 7}


def tree(value: Any) -> dict[str, Any]:
    """The description of nested containers; a leaf is None."""
    if isinstance(value, dict):
        return {"type": "builtins.dict", "context": json.dumps(list(value)), "children_spec": [tree(v) for v in value.values()]}
    if isinstance(value, (list, tuple)):
        return {"type": f"builtins.{type(value).__name__}", "context": "null", "children_spec": [tree(v) for v in value]}
    return {"type": None, "context": None, "children_spec": []}


def graph(nodes: list[Any], inputs: dict[str, Any], outputs: list[Any], weights: dict[str, Any], containers: Any, more: list[Any]) -> dict[str, Any]:
    """The JSON of a model. Inputs are (shape, dtype) by name."""
    specs: list[Any] = [{"buffer": {"arg": {"name": f"w_{n}"}, "buffer_name": n, "persistent": True}} for n in weights]
    specs += [{"user_input": {"arg": {"as_tensor": {"name": n}}}} for n in inputs]
    values = {n: meta(shape, dtype) for n, (shape, dtype) in inputs.items()}
    results = more + [{"user_output": {"arg": argument(o)}} for o in outputs]
    spec = json.dumps([1, tree(containers if containers is not None else tuple(None for _ in outputs))])
    calls = [{"fqn": "", "signature": {"inputs": [], "outputs": [], "in_spec": "", "out_spec": spec, "forward_arg_names": []}}]
    body = {"inputs": [], "outputs": [], "nodes": nodes, "tensor_values": values, "sym_int_values": {}, "sym_bool_values": {}}
    module = {"graph": body, "signature": {"input_specs": specs, "output_specs": results}, "module_call_graph": calls, "metadata": {}}
    return {"graph_module": module, "opset_version": {"aten": 10}, "range_constraints": {},
            "schema_version": {"major": 8, "minor": 20}, "torch_version": "2.15.0"}


def archive(nodes: list[Any], inputs: dict[str, Any], outputs: list[Any], weights: dict[str, Any] | None = None, containers: Any = None,
            more: list[Any] = [], edit: Any = None, packed: int = zipfile.ZIP_STORED) -> bytes:  # noqa: B006
    """Weights are arrays, or (bytes, meta). ``edit`` changes the files by name before they are packed."""
    weights = weights or {}
    files: dict[str, bytes] = {}
    config = {}
    for i, (name, array) in enumerate(weights.items()):
        content, described = array if isinstance(array, tuple) else (array.tobytes(), meta(array.shape, array.dtype.name))
        files[f"data/weights/weight_{i}"] = content
        config[name] = {"path_name": f"weight_{i}", "is_param": False, "use_pickle": False, "tensor_meta": described}
    model = graph(nodes, inputs, outputs, weights, containers, more)
    if edit:
        edit(model, config)
    files["data/weights/model_weights_config.json"] = json.dumps({"config": config}).encode()
    files["models/model.json"] = json.dumps(model).encode()
    files["archive_format"] = b"pt2"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as zip_file:
        for name, content in files.items():
            zip_file.writestr(f"m/{name}", content)
    return out.getvalue()
