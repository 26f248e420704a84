"""What a predictor runs: a program with its weights, or a model of another framework. Clones share it."""

from __future__ import annotations

import os
import warnings
from typing import Any, Protocol

from oar import _C
from oar._C import Tensor
from oar.framework.oar_file import is_oar_path
from oar.inference import paddle
from oar.inference.config import Config
from oar.inference.mixed import BoundProgram, LowPrecision, bound_in, load_bound
from oar.interop.files import load as any_model
from oar.static.io import load_from_file

__all__ = ["Runnable", "load_runnable"]


class Runnable(Protocol):
    """A model by the names of its inputs and outputs. Several threads may run it at once."""

    inputs: list[str]
    outputs: list[str]

    def run(self, given: list[Tensor]) -> list[Tensor]:
        """The outputs, in order, for inputs in order."""
        ...

    def dtype_of(self, name: str) -> str:
        """The dtype of an input."""
        ...


class _Program:
    """A program of Oar. What depends on its weights alone is computed once, unless passes are off."""

    def __init__(self, program: BoundProgram, with_passes: bool) -> None:
        self.inputs, self.outputs = program.feeds, program.outputs
        self._native = program.native.optimised(True) if with_passes else program.native
        parts = dict(zip(program.inputs, _C.saved_parts(program.native)["inputs"]))
        self._ports = [(name, kind, list(shape)) for name, (kind, shape) in parts.items()]
        # The places of the program's inputs among ours; one that no output depends on is not an input of the program.
        places = [self.inputs.index(name) for name in program.inputs]
        self._places = None if places == list(range(len(self.inputs))) else places
        self._fitting: list[tuple[Any, list[int]]] = []  # dtypes and shapes of the inputs that were found to fit last

    def dtype_of(self, name: str) -> str:
        return next((kind for port, kind, _ in self._ports if port == name), "float32")

    def run(self, given: list[Tensor]) -> list[Tensor]:
        if self._places is not None:
            given = [given[place] for place in self._places]
        described = [(tensor.dtype, tensor.shape) for tensor in given]
        if described == self._fitting:
            return self._native.run(given)
        fits = True
        for tensor, (name, kind, shape) in zip(given, self._ports):
            if tensor.dtype.name != kind:
                raise ValueError(
                    f"[Predictor.run] the data type of the input {name!r} is {kind}, but {tensor.dtype.name} was fed."
                )
            sizes = tensor.shape
            if len(sizes) != len(shape) or any(want != size for want, size in zip(shape, sizes) if type(want) is int):
                warnings.warn(f"[Predictor.run] the shape of the input {name!r} is {shape}, but {sizes} was fed.", stacklevel=4)
                fits = False
        if not fits:
            return self._native.run_on_other_shapes(given)
        self._fitting = described
        return self._native.run(given)


class _Foreign:
    """A model of another framework."""

    def __init__(self, model: Any) -> None:
        self.inputs, self.outputs = list(model.inputs), list(model.outputs)
        self._native = model._native
        self._dtypes = {name: kind or "float32" for name, kind, _ in model._native.inputs}

    def dtype_of(self, name: str) -> str:
        return self._dtypes[name]

    def run(self, given: list[Tensor]) -> list[Tensor]:
        return self._native.run(given)


class _Low:
    """A model in a lower precision."""

    def __init__(self, plain: Runnable, low: LowPrecision) -> None:
        self.inputs, self.outputs = plain.inputs, plain.outputs
        self.dtype_of = plain.dtype_of
        self._low = low

    def run(self, given: list[Tensor]) -> list[Tensor]:
        return self._low.run(dict(zip(self.inputs, given)))


def load_runnable(config: Config) -> Runnable:
    """The model of a config, in the precision that it asks for.

    Args:
        config: names the files, or holds their content.
    """
    source = _source(config)
    plain = _Program(source, config.ir_optim()) if isinstance(source, BoundProgram) else _Foreign(source)
    if config._low_precision is None:
        return plain
    return _Low(plain, LowPrecision(source, config._low_precision, config._low_ops))


def _source(config: Config) -> Any:
    program, params = config.prog_file(), config.params_file()
    if config._buffers is not None:
        return _from_contents(*config._buffers, "set_model_buffer")
    if program is None:
        raise ValueError("[create_predictor] the Config has no model. Give it an .oar file, or prog_file and params_file.")
    if params is not None:
        return _from_contents(load_from_file(program), load_from_file(params) if os.path.isfile(params) else None, params)
    return load_bound(program, None) if is_oar_path(program) else any_model(program)


def _from_contents(program: bytes, params: bytes | None, where: str) -> Any:
    if _C.is_paddle_program(program):
        return paddle.Model(program, params or b"")
    if params is None:
        raise ValueError(f"[create_predictor] there is no file {where}.")
    return bound_in(program, params, where)
