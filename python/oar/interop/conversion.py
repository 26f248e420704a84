"""Models and weights, from one format to another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework.oar_file import save_oar
from oar.interop.files import FileGuess, guess, load
from oar.interop.graph import GraphModel
from oar.static.oar_model import OarBuilder
from oar.static.program import written_elsewhere

__all__ = ["Conversion", "convert"]

_WEIGHT_ENDS = (".safetensors", ".npz", ".pdparams")
_LIKELY_BATCH, _LIKELY_SIZE = 2, 320  # of open sizes, while a model is imported; they stay open


class Conversion(NamedTuple):
    """What ``convert`` did.

    Args:
        source: the file that was read.
        target: the file that was written.
        calls: how many calls of ops the model has; 0 for weights.
        tensors: how many weights it has.
        bytes: the size of all files that were written.

    Examples:
        >>> import oar
        >>> oar.interop.Conversion(oar.interop.FileGuess('onnx', 'model', 'a.onnx'), 'a.oar', 3, 2, 4096).tensors
        2
    """

    source: FileGuess
    target: str
    calls: int
    tensors: int
    bytes: int


def convert(source: str | os.PathLike[str], target: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None,
            method: str = "forward", input_shapes: Mapping[str, list[int]] | None = None, opset_version: int = 17) -> Conversion:
    """Write a model, or a file of weights, in another format. Files appear whole or not at all.

    The source is guessed by its content: any model or file of tensors that Oar reads. The ending of the target says what is written:
    ``.oar``, ``.onnx`` or Paddle's ``.json`` (``.pdmodel`` for Paddle 2) with ``.pdiparams`` for models; ``.safetensors``, ``.npz`` or ``.pdparams`` for weights,
    also for those of a model. Sizes that the source leaves open stay open, unless the format cannot say so (Caffe, TFLite) or an op
    needs to know them.

    Args:
        source: the model or file of weights.
        target: the file to write.
        weights: the second file of a model that has two, if it is not beside the first.
        method: the method of an ``.oar`` file.
        input_shapes: shapes of inputs by name, for models whose file does not say enough about them.
        opset_version: the version of ONNX's operators.

    Returns:
        a ``Conversion``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> spec = oar.static.InputSpec(['batch', 3], 'float32', 'x')
        >>> oar.jit.save(oar.nn.Linear(3, 2), os.path.join(folder, 'net.oar'), input_spec=[spec])
        >>> done = oar.interop.convert(os.path.join(folder, 'net.oar'), os.path.join(folder, 'net.onnx'))
        >>> done.source.format, done.tensors
        ('oar', 2)
        >>> oar.interop.load(os.path.join(folder, 'net.onnx')).shapes
        {'x': ['batch', 3]}
    """
    found, path = guess(source), os.fspath(target)
    shapes = dict(input_shapes or {})
    if not path.endswith(".oar"):
        done = _C.convert(os.fspath(source), path, "" if weights is None else os.fspath(weights), method, shapes, opset_version)
        return Conversion(found, path, *done)
    if os.path.abspath(found.path) == os.path.abspath(path):
        raise ValueError(f"[convert] source and target are the same file, {path!r}.")
    if found.use == "tensors":
        raise ValueError(f"[convert] {found.path!r} holds tensors ({found.format}) and no model, so .oar cannot be written. hint: Choose "
                         f"one of {', '.join(_WEIGHT_ENDS)}.")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with written_elsewhere(), oar.no_grad():
        program = _Source(load(source, weights, method), method, shapes)
        program.write_oar(path)
    return Conversion(found, path, len(program.native.op_names), len(program.states()), os.path.getsize(path))


# models ------------------------------------------------------------------------------------------


class _Source:
    """The program of a model, with the names of its inputs in order and of its outputs."""

    def __init__(self, model: GraphModel, method: str, shapes: dict[str, list[int]]) -> None:
        self.model = model
        if model.format in ("oar", "oar-program"):
            self._take_saved(method)
            return
        self.native = model.program(*example_inputs(model, shapes))
        self.inputs, self.outputs = self.native.input_names, model.outputs

    def _take_saved(self, method: str) -> None:
        """Of Oar's own files, whose states keep their names."""
        from oar.inference.mixed import load_bound  # which imports this package

        path = self.model.path
        weights = None if self.model.format == "oar" else os.path.splitext(path)[0] + ".pdiparams"
        bound = load_bound(path, weights, method)
        self.native, self.inputs, self.outputs = bound.native, bound.inputs, bound.outputs

    def states(self) -> dict[str, Tensor]:
        """The weights by name."""
        named: dict[str, Tensor] = {}
        for label, tensor in self.native.states():
            if not tensor.name:
                tensor.name = label
            if named.setdefault(tensor.name, tensor) is not tensor:
                raise ValueError(f"[convert] the model has two weights that are called {tensor.name!r}.")
        return named

    def write_oar(self, path: str) -> None:
        states = self.states()
        builder = OarBuilder({"source": os.path.basename(self.model.path)})
        builder.add("forward", "", [self.native.for_deployment()], self.inputs, self.outputs, self.inputs)
        rows = {name: {"key": name, "parameter": tensor.is_floating_point(), "stop_gradient": True} for name, tensor in states.items()}
        save_oar(path, builder.content(states, {"states": rows}))


def example_inputs(model: GraphModel, shapes: Mapping[str, list[int]], seed: int = 0) -> list[Tensor]:
    """Random inputs that fit a model: normal numbers, and 0 or 1 for integers, which are indices of nearly everything."""
    wrong = [name for name in shapes if name not in model.inputs]
    if wrong:
        raise ValueError(f"[convert] the model has no input {wrong[0]!r}; it has {', '.join(model.inputs)}.")
    stream = np.random.RandomState(seed)
    sizes: dict[str, int] = {}  # a name is one size wherever it occurs
    made = []
    for name in model.inputs:
        dtype = model.dtypes[name] or "float32"
        shape = _example_shape(name, model.shapes[name], shapes.get(name), sizes)
        values = stream.randn(*shape) if "float" in str(dtype) else stream.randint(0, 2, shape)
        made.append(oar.to_tensor(np.asarray(values)).astype(dtype))
    return made


def _example_shape(name: str, shape: Any, given: list[int] | None, sizes: dict[str, int]) -> list[int]:
    if shape is None and given is None:
        raise ValueError(f"[convert] the file does not say how many axes the input {name!r} has. hint: Pass --input-shape {name}=1,3,224,224 "
                         "(or input_shapes), with its sizes.")
    if shape is not None and given is not None:
        fits = len(shape) == len(given) and all(isinstance(a, str) or a == b for a, b in zip(shape, given))
        if not fits:
            raise ValueError(f"[convert] the shape {given} does not fit the input {name!r}, which is {shape} in the file.")
    if given is not None:
        sizes.update({size: number for size, number in zip(shape or [], given) if isinstance(size, str)})
        return given
    likely = [_LIKELY_BATCH if axis == 0 else _LIKELY_SIZE for axis in range(len(shape))]
    return [sizes.setdefault(size, other) if isinstance(size, str) else size for size, other in zip(shape, likely)]
