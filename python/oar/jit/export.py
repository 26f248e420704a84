"""``jit.save``: a layer or a function as programs in files."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import oar
from oar import _C
from oar._C import Tensor
from oar.framework._replace import replace_files
from oar.framework.io import states_to_bytes
from oar.framework.oar_file import is_oar_path, save_oar
from oar.jit import specs
from oar.jit.static_function import StaticFunction
from oar.jit.variant import CapturePlan, Declined, capture_variant
from oar.nn.layer.layers import Layer
from oar.static.checkpoints import prefix_of
from oar.static.input_spec import InputSpec
from oar.static.io import serialized
from oar.static.oar_model import OarBuilder
from oar.static.program import written_elsewhere

__all__ = ["INFO_FORMAT", "INFO_VERSION", "evaluating", "method_of", "save"]

INFO_FORMAT, INFO_VERSION = "oar layer", 1
_OPTIONS = {
    "clip_extra", "combine_params", "input_names_after_prune", "output_spec", "skip_forward", "skip_prune_program", "with_hook",
}
_OAR_OPTIONS = {"docs", "metadata", "shard_size"}
_EXAMPLE_SIZES = (4, 32, 224)  # of open axes, tried in turn: a network may need images of some size


class _Place:
    """Where a tensor stands in the structure of arguments."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Method:
    """A function with the inputs that its program takes."""

    def __init__(self, call: Callable, input_spec: Any) -> None:
        self.call = call
        self.title = getattr(call, "__name__", type(call).__name__)
        self.inputs: list[InputSpec] = []
        listed = list(input_spec) if isinstance(input_spec, (list, tuple)) else [input_spec]
        names = specs.positional_names(call, len(listed))
        self.arguments = [self._placed(one, name) for one, name in zip(listed, names)]

    def _placed(self, spec: Any, name: str) -> Any:
        if isinstance(spec, Tensor):
            spec = InputSpec.from_tensor(spec, name)
        if isinstance(spec, InputSpec):
            self.inputs.append(InputSpec(spec.shape, spec.dtype, self._free(spec.name or name), spec.stop_gradient))
            return _Place(len(self.inputs) - 1)
        if isinstance(spec, dict):
            return {key: self._placed(one, f"{name}_{key}") for key, one in spec.items()}
        if isinstance(spec, (list, tuple)):
            return type(spec)([self._placed(one, f"{name}_{i}") for i, one in enumerate(spec)])
        return spec

    def _free(self, name: str) -> str:
        taken = {spec.name for spec in self.inputs}
        return next(one for one in [name, *(f"{name}_{i}" for i in range(len(taken) + 1))] if one not in taken)

    def as_flat(self, kept: list[int] | None) -> Callable:
        """The function of a flat list of tensors that returns a flat list of tensors."""
        call, arguments = self.call, self.arguments

        def flat(*tensors: Tensor) -> list[Tensor]:
            found = _tensors_in(call(*_filled(arguments, tensors)))
            chosen = found if kept is None else [found[i] for i in kept]
            return [oar.assign(tensor) for tensor in chosen]  # an input that is returned is a result, too

        return flat

    def captured(self, kept: list[int] | None = None) -> Any:
        """The program, whose states are the tensors that the function reads outside."""
        declined: Declined | None = None
        flat = self.as_flat(kept)
        sizes = _EXAMPLE_SIZES if any(_is_open(d) for spec in self.inputs for d in spec.shape) else _EXAMPLE_SIZES[:1]
        for keeps_tensors, size in itertools.product((False, True), sizes):
            examples = _examples(self.inputs, size)
            names = [str(spec.name) for spec in self.inputs]
            plan = CapturePlan(flat, tuple(examples), {}, examples, names, self.title, keeps_tensors)
            plan.least_open = 1  # there is one program for all sizes; what it may not assume, capture writes down
            plan.symbols = specs.open_sizes(flat, self.inputs, tuple(examples), {}, examples)
            try:
                variant = capture_variant(plan, with_open=bool(plan.symbols))
            except Declined as error:
                declined = declined or error
                continue
            if variant.raises:
                raise RuntimeError(f"[jit.save] {self.title} raises depending on a tensor, which a program in a file cannot. Save "
                                   "another function.")
            return variant.program.program
        raise RuntimeError(f"[jit.save] {self.title} cannot be written as one program: {declined}. Compute with tensors only, "
                           "or save another function.")


def _is_open(size: Any) -> bool:
    return size is None or isinstance(size, str)


def _examples(inputs: list[InputSpec], least: int) -> list[Tensor]:
    """Zeros that fit the specs, with different sizes for different open axes."""
    named: dict[str, int] = {}
    made = []
    for i, spec in enumerate(inputs):
        keys = [size if isinstance(size, str) else f"{i} {axis}" for axis, size in enumerate(spec.shape)]
        shape: list[Any] = [named.setdefault(key, least + len(named)) if _is_open(size) else size for key, size in zip(keys, spec.shape)]
        tensor = oar.zeros(shape, dtype=spec.dtype)
        tensor.stop_gradient = spec.stop_gradient or not tensor.is_floating_point()
        made.append(tensor)
    return made


def _filled(value: Any, tensors: tuple[Tensor, ...]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.index]
    if isinstance(value, dict):
        return {key: _filled(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_filled(item, tensors) for item in value])
    return value


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a result in order; those of a dictionary by their keys."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    return [t for item in value for t in _tensors_in(item)] if isinstance(value, (list, tuple)) else []


# what is saved of an object ----------------------------------------------------------------------


def _spec_of(static: Any, given: Any) -> Any:
    """The input spec of a function: the one passed, its own, or that of the last call."""
    if given is not None:
        return given
    if isinstance(static, StaticFunction):
        if static._input_spec is not None:
            return static._input_spec
        if static._last_specs is not None:
            return static._last_specs
    function = getattr(static, "_call", static)
    if not [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]:
        return []
    raise RuntimeError(f"[jit.save] the inputs of {getattr(function, '__name__', 'the function')} are not known. Pass "
                       "input_spec=[InputSpec(...)], or call it once after to_static.")


def _methods_of(layer: Layer, input_spec: Any, options: dict[str, Any]) -> dict[str, _Method]:
    found: dict[str, _Method] = {}
    if not options.get("skip_forward", False):
        forward = layer.forward
        spec = _spec_of(forward, input_spec)
        found["forward"] = _Method(layer if options.get("with_hook") else getattr(forward, "_call", forward), spec)
    for name in dir(type(layer)):
        if name == "forward" or not isinstance(inspect.getattr_static(layer, name), StaticFunction):
            continue
        method = getattr(layer, name)
        found[name] = _Method(method._call, _spec_of(method, None))
    return found


@contextmanager
def evaluating(layers: list[Layer]) -> Iterator[bool]:
    """Layers for inference within the block. Gives whether one of them was for training."""
    modes = [(one, one.training) for layer in layers for one in layer.sublayers(include_self=True)]
    for one, _ in modes:
        one.training = False
    try:
        yield any(training for _, training in modes)
    finally:
        for one, training in modes:
            one.training = training


def _chosen(method: _Method, output_spec: Any) -> list[int] | None:
    if output_spec is None:
        return None
    places = [one for one in output_spec if isinstance(one, int)]
    if len(places) != len(output_spec):
        raise ValueError(f"[jit.save] output_spec of {method.title} should hold the places of results among all results, for example "
                         f"[0], but received {output_spec!r}.")
    return places


def _names_of(program: Any, keys: dict[int, str]) -> dict[str, Tensor]:
    """The states by their names. Raises where two tensors have one name."""
    named: dict[str, Tensor] = {}
    for label, tensor in program.states():
        name = tensor.name or keys.get(id(tensor)) or label
        if named.setdefault(name, tensor) is not tensor:
            raise ValueError(f"[jit.save] two tensors are called {name!r}. Give each a name of its own, for example by ParamAttr(name=...).")
    return named


class _Captured(NamedTuple):
    """The programs of a method, the names of their inputs and results, and all of their states."""

    program: Any
    trained: Any
    names: list[str]
    results: list[str]
    states: dict[str, Tensor]


def _captured(method: _Method, layers: list[Layer], output_spec: Any, keys: dict[int, str]) -> _Captured:
    kept = _chosen(method, output_spec)
    with written_elsewhere():
        with evaluating(layers) as training:
            program = method.captured(kept)
        trained = method.captured(kept) if training else None
    names = [str(spec.name) for spec in method.inputs]
    results = [f"output_{i}" for i in range(len(_C.saved_parts(program)["outputs"]))]
    states = _names_of(program, keys) | (_names_of(trained, keys) if trained is not None else {})
    return _Captured(program.for_deployment(), trained, names, results, states)


def _state_entries(states: dict[str, Tensor], keys: dict[int, str], buffers: set[int]) -> dict[str, Any]:
    return {name: {"key": keys.get(id(tensor), name), "parameter": isinstance(tensor, oar.framework.parameter.Parameter)
                   and id(tensor) not in buffers, "stop_gradient": tensor.stop_gradient} for name, tensor in states.items()}


def _write_to(content: bytes, out: BinaryIO) -> None:
    out.write(content)


def method_of(layer: Any, input_spec: Any) -> tuple[list[Layer], _Method]:
    """The forward of a layer, or a function, with its inputs; and the layers it belongs to."""
    if isinstance(layer, Layer):
        forward = layer.forward
        return [layer], _Method(getattr(forward, "_call", forward), _spec_of(forward, input_spec))
    owner = getattr(layer, "_instance", getattr(layer, "__self__", None))
    layers = [owner] if isinstance(owner, Layer) else []
    return layers, _Method(getattr(layer, "_call", layer), _spec_of(layer, input_spec))


def save(layer: Any, path: str, input_spec: Any = None, **configs: Any) -> None:
    """Writes a layer or a function as programs with their states, for ``jit.load``, ``oar.inference`` and the runtime library.

    A path that ends in ``.oar`` is that of one file with everything (``docs/file-format.md``). Otherwise there are several:
    ``path.pdmodel`` holds the program of ``forward`` for inference, ``path.pdiparams`` what it reads, and ``path.pdiparams.info`` what
    only ``jit.load`` needs: names of states and the program for training. Another method that ``to_static`` was applied to is
    written to files ``path.method.pdmodel`` and ``path.method.pdiparams``. All files are replaced, or none is.

    Args:
        layer: a ``Layer``, a function, or one that ``to_static`` was applied to.
        path: the path of an ``.oar`` file, or of several files without their extension.
        input_spec: an ``InputSpec``, a tensor or a plain value per argument. None takes that of ``to_static``, or of the last call.
        configs: ``output_spec``: the places of the results to keep; ``with_hook``: whether hooks of the layer run, too;
            ``skip_forward``: whether only other methods are saved. ``combine_params``, ``clip_extra``, ``skip_prune_program`` and
            ``input_names_after_prune`` are accepted for compatibility. For an ``.oar`` file there are ``metadata``: texts by name;
            ``docs``: texts about inputs and outputs; ``shard_size``: the most bytes of weights per file.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> net = oar.nn.Linear(3, 2)
        >>> path = os.path.join(tempfile.mkdtemp(), 'net')
        >>> oar.jit.save(net, path, input_spec=[oar.static.InputSpec([None, 3], 'float32', 'x')])
        >>> loaded = oar.jit.load(path)
        >>> x = oar.ones([4, 3])
        >>> bool(oar.allclose(loaded(x), net(x)))
        True
        >>> oar.jit.save(net, path + '.oar', input_spec=[oar.static.InputSpec([None, 3], 'float32', 'x')], metadata={'licence': 'MIT'})
        >>> bool(oar.allclose(oar.jit.load(path + '.oar')(x), net(x)))
        True
    """
    prefix = prefix_of(path)
    options = _OPTIONS | _OAR_OPTIONS if is_oar_path(prefix) else _OPTIONS
    unknown = set(configs) - options
    if unknown:
        raise ValueError(f"[jit.save] there is no option {sorted(unknown)[0]!r}. The options are {', '.join(sorted(options))}.")
    if isinstance(layer, Layer):
        layers, methods = [layer], _methods_of(layer, input_spec, configs)
    elif isinstance(layer, StaticFunction) or inspect.isfunction(layer) or inspect.ismethod(layer):
        layers, method = method_of(layer, input_spec)
        methods = {"forward": method}
    else:
        raise TypeError(f"[jit.save] layer should be a Layer or a function, but received {type(layer).__name__}.")
    write = _write_oar if is_oar_path(prefix) else _write_files
    write(prefix, layers, methods, configs)


def _write_oar(path: str, layers: list[Layer], methods: dict[str, _Method], configs: dict[str, Any]) -> None:
    keys = {id(tensor): key for layer in layers for key, tensor in layer.state_dict().items()}
    buffers = {id(tensor) for layer in layers for tensor in layer.buffers()}
    builder = OarBuilder(configs.get("metadata"), configs.get("docs"))
    states: dict[str, Tensor] = {}
    for name, method in methods.items():
        made = _captured(method, layers, configs.get("output_spec"), keys)
        programs = [made.program] if made.trained is None else [made.program, made.trained]
        entry = builder.add(name, inspect.getdoc(method.call) or "", programs, made.names, made.results, made.names)
        for port, spec in zip(entry["inputs"], method.inputs):
            port["stop_gradient"] = spec.stop_gradient
        for key, tensor in made.states.items():
            if states.setdefault(key, tensor) is not tensor:
                raise ValueError(f"[jit.save] two tensors are called {key!r}. Give each a name of its own, for example by ParamAttr(name=...).")
    with written_elsewhere():
        save_oar(path, builder.content(states, {"states": _state_entries(states, keys, buffers)}), configs.get("shard_size"))


def _write_files(prefix: str, layers: list[Layer], methods: dict[str, _Method], configs: dict[str, Any]) -> None:
    keys = {id(tensor): key for layer in layers for key, tensor in layer.state_dict().items()}
    buffers = {id(tensor) for layer in layers for tensor in layer.buffers()}
    files: dict[str, bytes] = {}
    info: dict[str, Any] = {"format": INFO_FORMAT, "version": INFO_VERSION, "methods": {}, "states": {}}
    for name, method in methods.items():
        made = _captured(method, layers, configs.get("output_spec"), keys)
        entry: dict[str, Any] = {"inputs": [[list(spec.shape), spec.dtype.name, spec.name, spec.stop_gradient] for spec in method.inputs]}
        if made.trained is not None:
            entry["training"] = serialized(made.trained, made.names, made.results, made.names).decode()
        program = serialized(made.program, made.names, made.results, made.names)
        base = prefix if name == "forward" else f"{prefix}.{name}"
        info["methods"][name] = entry
        info["states"] |= _state_entries(made.states, keys, buffers)
        with written_elsewhere():
            files |= {base + ".pdmodel": program, base + ".pdiparams": states_to_bytes(made.states)}
    files[prefix + ".pdiparams.info"] = json.dumps(info).encode()
    replace_files({file: partial(_write_to, content) for file, content in files.items()})
