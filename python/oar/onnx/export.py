"""Layers, functions and programs as ONNX models."""

from __future__ import annotations

import inspect
import os
from typing import Any

import oar
from oar import _C
from oar.jit.export import evaluating, method_of
from oar.nn.layer.layers import Layer
from oar.static.program import written_elsewhere

__all__ = ["export"]

_OLDEST = 17  # older versions of the operators lack layer normalisation and others
_OPTIONS = {"input_names", "output_names", "output_spec", "largest_inside"}


def export(layer: Any, path: str | os.PathLike[str], input_spec: Any = None, opset_version: int = 9, **configs: Any) -> None:
    """Writes a layer or a function as an ONNX model, ``path.onnx``.

    The layer is written for inference, as after ``eval``. Sizes that ``input_spec`` leaves open stay open. Ops that ONNX does not have
    are written as those that they consist of; an op for which that is not possible is an error that lists all of them.

    Args:
        layer: a ``Layer``, a function of tensors, one that ``to_static`` was applied to, or a captured program (``oar.jit.capture``).
        path: the path of the file; ``.onnx`` is added if it is missing.
        input_spec: an ``InputSpec``, a tensor or a plain value per argument. None takes that of ``to_static``, or of the last call.
        opset_version: the version of ONNX's operators, up to 23. Versions below 17 become 17.
        configs: ``input_names`` and ``output_names``: names in the file; ``output_spec``: the places of the results to keep;
            ``largest_inside``: how many bytes of weights the file may hold (1 GB), more go to ``path.onnx.data``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> net = oar.nn.Linear(3, 2)
        >>> path = os.path.join(tempfile.mkdtemp(), 'net')
        >>> oar.onnx.export(net, path, input_spec=[oar.static.InputSpec([None, 3], 'float32', 'x')])
        >>> model = oar.onnx.load(path + '.onnx')
        >>> x = oar.ones([4, 3])
        >>> bool(oar.allclose(model(x)[0], net(x)))
        True
    """
    unknown = set(configs) - _OPTIONS
    if unknown:
        raise ValueError(f"[onnx.export] there is no option {sorted(unknown)[0]!r}. The options are {', '.join(sorted(_OPTIONS))}.")
    file = os.fspath(path)
    if not os.path.basename(file):
        raise ValueError(f"[onnx.export] path {file!r} names a folder, not a file.")
    file += "" if file.endswith(".onnx") else ".onnx"
    os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
    program, names = _program_of(layer, input_spec, configs)
    _C.onnx_export(program, file, max(int(opset_version), _OLDEST), list(configs.get("input_names") or names),
                   list(configs.get("output_names") or []), int(configs.get("largest_inside", 1 << 30)))


def _program_of(layer: Any, input_spec: Any, configs: dict[str, Any]) -> tuple[Any, list[str]]:
    native = getattr(layer, "_program", layer)
    if isinstance(native, _C.Program):
        return native, []
    if not isinstance(layer, Layer) and not callable(layer) or inspect.isclass(layer):
        raise TypeError(f"[onnx.export] layer should be a Layer, a function or a program, but received {type(layer).__name__}.")
    layers, method = method_of(layer, input_spec)
    with written_elsewhere(), evaluating(layers), oar.no_grad():
        program = method.captured(configs.get("output_spec"))
    return program, [str(spec.name) for spec in method.inputs]
