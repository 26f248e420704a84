"""``jit.load``: what ``jit.save`` wrote, as a layer."""

from __future__ import annotations

import json
import os
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.framework.io import states_from_bytes
from oar.framework.oar_file import is_oar_path, load_oar
from oar.framework.parameter import Parameter
from oar.inference.paddle import Model as PaddleModel
from oar.inference.paddle import program_file
from oar.jit.export import INFO_FORMAT, INFO_VERSION
from oar.nn.layer.layers import Layer
from oar.static.checkpoints import prefix_of
from oar.static.input_spec import InputSpec
from oar.static.io import deserialize_program, load_from_file, program_in, serialized
from oar.static.program import Program, written_elsewhere

__all__ = ["TranslatedLayer", "load"]

# The endings of what `jit.save` writes; programs build paths with them.
INFER_MODEL_SUFFIX = ".pdmodel"
INFER_PARAMS_SUFFIX = ".pdiparams"
INFER_PARAMS_INFO_SUFFIX = ".pdiparams.info"


class _LoadedMethod:
    """A method's programs, bound to the tensors of the layer."""

    def __init__(self, name: str, program: Program, trained: Program | None, inputs: list[InputSpec]) -> None:
        self.name, self.program, self.trained, self.inputs = name, program, trained, inputs
        self._ready: dict[bool, Any] = {}

    def run(self, layer: TranslatedLayer, values: list[Tensor]) -> list[Tensor]:
        """The results for these inputs; they have a history if one of them or a parameter requires a gradient."""
        training = layer.training and self.trained is not None
        executable, order = self._executable(layer, training)
        inputs = [values[i] for i in order]
        states = [tensor for _, tensor in executable.states()]
        if _C.is_grad_enabled() and any(not t.stop_gradient for t in [*inputs, *states]):
            return executable.run_on_other_shapes(inputs)
        return executable.run(inputs)

    def _executable(self, layer: TranslatedLayer, training: bool) -> Any:
        if training not in self._ready:
            program = self.trained if training else self.program
            assert program is not None
            with written_elsewhere():
                builder = program._builder
                executable, names = builder.draft(builder.outputs(), layer._content, False)
            places = {str(spec.name): i for i, spec in enumerate(self.inputs)}
            self._ready[training] = executable, [places[name] for name in names]
        return self._ready[training]

    def output_spec(self) -> list[InputSpec]:
        found = []
        for name, variable in zip(self.program._fetch_names, self.program._builder.outputs()):
            shape = [size if isinstance(size, int) and size >= 0 else None for size in variable.shape]
            found.append(InputSpec(shape, variable.dtype, name))
        return found


class _PaddleMethod(_LoadedMethod):
    """The program of a layer that Paddle wrote. It gets programs for the sizes that come."""

    def __init__(self, name: str, model: PaddleModel) -> None:
        inputs = [InputSpec([None if isinstance(size, str) else size for size in shape], dtype, given) for given, dtype, shape in model.signature]
        self.name, self.trained, self.inputs, self._model = name, None, inputs, model

    def run(self, layer: TranslatedLayer, values: list[Tensor]) -> list[Tensor]:
        with written_elsewhere(), oar.no_grad():
            return self._model(*values)

    @property
    def program(self) -> Program:  # type: ignore[override]
        """The program for all sizes."""
        with written_elsewhere():
            executable, names = self._model.open_program(), self._model.inputs
        return deserialize_program(serialized(executable, names, self._model.outputs, names))


class TranslatedLayer(Layer):
    """A layer that ``jit.save`` wrote: programs and their states. ``jit.load`` returns it.

    ``eval()`` runs the program for inference. ``train()`` runs the one for training if the layer was saved while it was for training:
    dropout drops and running statistics move.

    Args:
        programs: the programs of each method.
        persistable_vars: the tensors by the names that programs have for them, and by the keys of ``state_dict``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'net')
        >>> oar.jit.save(oar.nn.Linear(3, 2), path, input_spec=[oar.static.InputSpec([None, 3])])
        >>> loaded = oar.jit.load(path)
        >>> isinstance(loaded, oar.jit.TranslatedLayer), sorted(loaded.state_dict())
        (True, ['bias', 'weight'])
    """

    def __init__(self, programs: dict[str, _LoadedMethod], persistable_vars: dict[str, tuple[str, Tensor]]) -> None:
        super().__init__()
        self._methods = programs
        self._by_name = {name: tensor for name, (_, tensor) in persistable_vars.items()}
        for key, tensor in persistable_vars.values():
            if isinstance(tensor, Parameter):
                self._parameters[key] = tensor
            else:
                self._buffers[key] = tensor
        for name in programs:
            if name != "forward":
                object.__setattr__(self, name, self._caller(name))

    def _content(self, name: str, shape: list[int], dtype: Any, read: bool) -> Tensor:
        tensor = self._by_name.get(name)
        if tensor is None or list(tensor.shape) != list(shape) or tensor.dtype != dtype:
            held = "nothing" if tensor is None else f"{tensor.dtype.name}{list(tensor.shape)}"
            raise ValueError(f"[jit.load] the program needs {name!r} as {dtype.name}{shape}, but the file of states has {held}. "
                             "Save the layer again.")
        return tensor

    def _caller(self, name: str) -> Any:
        def call(*inputs: Any) -> Any:
            return self._call_method(name, inputs)

        call.__name__ = name
        return call

    def forward(self, *inputs: Any) -> Any:
        """Runs the saved ``forward`` on its tensors, in the order of its ``input_spec``."""
        return self._call_method("forward", inputs)

    def _call_method(self, name: str, inputs: tuple[Any, ...]) -> Any:
        method = self._method(name)
        values = _flat(name, inputs)
        if len(values) != len(method.inputs):
            raise ValueError(f"[{name}] {len(values)} tensors were passed; the saved program takes {len(method.inputs)}: "
                             f"{', '.join(str(spec.name) for spec in method.inputs)}.")
        results = method.run(self, values)
        return results[0] if len(results) == 1 else results

    def _method(self, name: str) -> _LoadedMethod:
        if name not in self._methods:
            raise ValueError(f"[TranslatedLayer] there is no method {name!r} in what was saved; it has {', '.join(self._methods)}.")
        return self._methods[name]

    def program(self, method_name: str = "forward") -> Program:
        """The program of a method, for inference."""
        return self._method(method_name).program

    def _input_spec(self, method_name: str = "forward") -> list[InputSpec]:
        return list(self._method(method_name).inputs)

    def _output_spec(self, method_name: str = "forward") -> list[InputSpec]:
        return self._method(method_name).output_spec()


def _flat(name: str, values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, dict):
            found += _flat(name, value.values())
        elif isinstance(value, (list, tuple)):
            found += _flat(name, value)
        elif hasattr(value, "__array__"):
            found.append(oar.to_tensor(value))
        else:
            raise TypeError(f"[{name}] a saved program takes tensors and arrays, not a {type(value).__name__}; plain values were fixed "
                            "when it was saved.")
    return found


# files -------------------------------------------------------------------------------------------


def _info(path: str) -> dict[str, Any]:
    """The layer's description, checked before it is used."""
    try:
        info = json.loads(load_from_file(path))
        fits = info["format"] == INFO_FORMAT and isinstance(info["methods"], dict) and isinstance(info["states"], dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise ValueError(f"[jit.load] {path} was not written by oar.jit.save, and there is no program of Paddle beside it.")
    if info.get("version") != INFO_VERSION:
        raise ValueError(f"[jit.load] {path} has version {info.get('version')}; this Oar reads version {INFO_VERSION}.")
    return info


def _state(name: str, entry: Any, tensor: Tensor) -> tuple[str, Tensor]:
    entry = entry if isinstance(entry, dict) else {}
    key = str(entry.get("key", name))
    if entry.get("parameter"):
        return key, Parameter.from_tensor(tensor, name=name, trainable=not entry.get("stop_gradient", False))
    tensor.name = name
    return key, tensor


def _specs(entry: Any, feeds: list[str], path: str) -> list[InputSpec]:
    try:
        found = [InputSpec(shape, dtype, str(name), bool(stop)) for shape, dtype, name, stop in entry["inputs"]]
    except (KeyError, TypeError, ValueError):
        found = []
    if sorted(str(spec.name) for spec in found) != sorted(feeds):
        raise ValueError(f"[jit.load] {path} does not describe the inputs of its program; the file is damaged.")
    return found


def _paddle_layer(prefix: str, model_file: str, params_name: str | None) -> TranslatedLayer | None:
    """The layer of files that Paddle wrote; None if there are none."""
    given = os.path.isfile(model_file)
    file = model_file if given and _C.is_paddle_program(load_from_file(model_file)) else None if given else program_file(prefix)
    if file is None:
        return None
    weights = os.path.join(os.path.dirname(prefix), params_name) if params_name else prefix + ".pdiparams"
    with written_elsewhere():
        model = PaddleModel(load_from_file(file), load_from_file(weights) if os.path.isfile(weights) else b"")
        states = {name: (name, tensor) for name, tensor in model.parameters().items()}
    return TranslatedLayer({"forward": _PaddleMethod("forward", model)}, states)


def _load_oar(path: str, verify: bool) -> TranslatedLayer:
    """The layer of one file; its weights are mapped, and a write copies the page that it changes."""
    content = load_oar(path, verify)
    described = content.header.get("methods", {})
    methods: dict[str, _LoadedMethod] = {}
    for name, (text, training) in content.programs.items():
        program = program_in(text, content.tensors)
        trained = program_in(training, content.tensors) if training else None
        methods[name] = _LoadedMethod(name, program, trained, _specs(_rows(described[name]), program._feed_names, path))
    rows = content.header.get("states")
    rows = rows if isinstance(rows, dict) else {}
    constants = {name for name in content.tensors if rows and name not in rows}
    with written_elsewhere():
        states = {name: _state(name, rows.get(name), tensor) for name, tensor in content.tensors.items() if name not in constants}
    return TranslatedLayer(methods, states)


def _rows(method: Any) -> dict[str, Any]:
    """The inputs as their signature describes them; an open size that is an expression has no name."""
    rows = []
    for port in method.get("inputs", []):
        shape = [size if isinstance(size, int) or str(size).isidentifier() else None for size in port["shape"]]
        rows.append([shape, port["dtype"], port["name"], port.get("stop_gradient", True)])
    return {"inputs": rows}


def load(path: str, **configs: Any) -> TranslatedLayer:
    """Reads what ``jit.save`` wrote: a layer to run, or to train further. Reading runs no code from the files.

    Files that Paddle wrote, ``.json`` or ``.pdmodel`` with ``.pdiparams``, become a layer for inference.

    Args:
        path: the path of an ``.oar`` file, or of several files without their extension.
        configs: ``model_filename`` and ``params_filename``: other names of the files, in the folder of ``path``; for an ``.oar`` file
            ``verify``: whether weights are compared with their checksums.

    Returns:
        a layer.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'double')
        >>> oar.jit.save(lambda x: x * 2, path, input_spec=[oar.static.InputSpec([None], 'float32', 'x')])
        >>> oar.jit.load(path)(oar.to_tensor([1.0, 2.0])).tolist()
        [2.0, 4.0]
    """
    prefix = prefix_of(path)
    if is_oar_path(prefix):
        return _load_oar(prefix, bool(configs.get("verify", False)))
    folder = os.path.dirname(prefix)
    theirs = _paddle_layer(prefix, os.path.join(folder, configs.get("model_filename") or ""), configs.get("params_filename"))
    if theirs is not None:
        return theirs
    info_path = prefix + ".pdiparams.info"
    if not os.path.isfile(info_path):
        raise ValueError(f"[jit.load] there is no file {info_path}; the path should be the one that jit.save was given.")
    info = _info(info_path)
    contents: dict[str, Tensor] = {}
    methods: dict[str, _LoadedMethod] = {}
    for name, entry in info["methods"].items():
        base = prefix if name == "forward" else f"{prefix}.{name}"
        given = (configs.get("model_filename"), configs.get("params_filename")) if name == "forward" else (None, None)
        files = [os.path.join(folder, file) if file else base + end for file, end in zip(given, (".pdmodel", ".pdiparams"))]
        for file in files:
            if not os.path.isfile(file):
                raise ValueError(f"[jit.load] there is no file {file}.")
        program = deserialize_program(load_from_file(files[0]))
        text = entry.get("training") if isinstance(entry, dict) else None
        trained = deserialize_program(text.encode()) if isinstance(text, str) else None
        methods[name] = _LoadedMethod(name, program, trained, _specs(entry, program._feed_names, info_path))
        with written_elsewhere():
            contents = {**states_from_bytes(load_from_file(files[1]), files[1]), **contents}
    with written_elsewhere():
        states = {name: _state(name, info["states"].get(name), tensor) for name, tensor in contents.items()}
    return TranslatedLayer(methods, states)
