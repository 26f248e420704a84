"""A loaded model, its inputs and outputs by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar import _C
from oar._lazy import np
from oar.framework.oar_file import is_oar_path
from oar.inference import paddle
from oar.inference.config import Config, DataType
from oar.static import Executor, Scope, load_inference_model, scope_guard
from oar.static.io import load_from_file
from oar.static.program import written_elsewhere

__all__ = ["Predictor", "PredictorPool", "Tensor", "create_predictor", "get_num_bytes_of_data_type"]


class Tensor:
    """An input or an output of a predictor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> oar.static.save_inference_model(path, [x], [y], executor, program=main)
        >>> oar.disable_static()
        >>> config = oar.inference.Config(path + '.pdmodel', path + '.pdiparams')
        >>> predictor = oar.inference.create_predictor(config)
        >>> predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(np.ones([1, 3], 'float32'))
        >>> _ = predictor.run()
        >>> predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().tolist()
        [[2.0, 2.0, 2.0]]
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._shape: list[int] | None = None
        self._array: Any = None

    def name(self) -> str:
        """Its name."""
        return self._name

    def reshape(self, shape: Sequence[int]) -> None:
        """The shape that the next content has."""
        self._shape = [int(s) for s in shape]

    def copy_from_cpu(self, data: Any) -> None:
        """The content for the next run."""
        if not isinstance(data, (np.ndarray, list)):
            raise TypeError(f"[copy_from_cpu] {self._name!r} takes an array, not {type(data).__name__}.")
        array = np.array(data)
        self._array = array if self._shape is None else array.reshape(self._shape)

    share_external_data = copy_from_cpu

    def copy_to_cpu(self) -> Any:
        """The content, after a run."""
        if self._array is None:
            raise ValueError(f"[copy_to_cpu] {self._name!r} has no content yet. Call run() first.")
        return np.array(self._array)

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._array.shape) if self._array is not None else list(self._shape or [])

    def type(self) -> DataType:
        """Its dtype."""
        return DataType(str(self._array.dtype))


class Predictor:
    """Runs a model; created by ``create_predictor``.

    Args:
        config: the ``Config`` of the model.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> oar.static.save_inference_model(path, [x], [y], executor, program=main)
        >>> oar.disable_static()
        >>> config = oar.inference.Config(path + '.pdmodel', path + '.pdiparams')
        >>> predictor = oar.inference.create_predictor(config)
        >>> predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(np.ones([1, 3], 'float32'))
        >>> _ = predictor.run()
        >>> predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().tolist()
        [[2.0, 2.0, 2.0]]
    """

    def __init__(self, config: Config) -> None:
        program, params = config.prog_file(), config.params_file()
        if program is None or (params is None and not is_oar_path(program)):
            raise ValueError("[create_predictor] the Config has no model. Give it an .oar file, or prog_file and params_file.")
        self._config = config
        theirs = params is not None and _C.is_paddle_program(load_from_file(program))
        self._model = paddle.load(program, params) if theirs else None
        if self._model is None:
            self._load(program, params)
        else:
            self._inputs = {name: Tensor(name) for name in self._model.inputs}
            self._outputs = {name: Tensor(name) for name in self._model.outputs}

    def _load(self, program: str, params: str | None) -> None:
        self._scope, self._executor = Scope(), Executor()
        with written_elsewhere(), scope_guard(self._scope):
            if params is None:
                loaded = load_inference_model(program, self._executor)
            else:
                loaded = load_inference_model(
                    None, self._executor, model_filename=load_from_file(program), params_filename=load_from_file(params))
            self._program, feeds, self._fetches = loaded
        self._inputs = {name: Tensor(name) for name in feeds}
        self._outputs = {name: Tensor(name) for name in self._program._fetch_names}

    def get_input_names(self) -> list[str]:
        """The names of the inputs."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of the outputs."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The input of this name."""
        return self._handle(self._inputs, name)

    def get_output_handle(self, name: str) -> Tensor:
        """The output of this name."""
        return self._handle(self._outputs, name)

    @staticmethod
    def _handle(handles: dict[str, Tensor], name: str) -> Tensor:
        if name not in handles:
            raise ValueError(f"the model has no {name!r} there. It has {', '.join(handles)}.")
        return handles[name]

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """Run on the content of the inputs; if called with a list of tensors, return the outputs as a list."""
        if inputs is not None:
            for handle, value in zip(self._inputs.values(), inputs):
                handle._shape = None
                handle.copy_from_cpu(np.asarray(value.numpy()))
        feed = {name: handle._array for name, handle in self._inputs.items()}
        missing = [name for name, array in feed.items() if array is None]
        if missing:
            raise ValueError(
                f"[Predictor.run] the inputs {', '.join(missing)} have no content. Call copy_from_cpu first."
            )
        threads, wanted = oar.get_num_threads(), self._config.cpu_math_library_num_threads()
        try:
            oar.set_num_threads(wanted)
            with written_elsewhere():
                if self._model is None:
                    made = self._executor.run(self._program, feed=feed, fetch_list=self._fetches, scope=self._scope)
                else:
                    made = [tensor.numpy() for tensor in self._model(feed)]
        finally:
            oar.set_num_threads(threads)
        for handle, array in zip(self._outputs.values(), made):
            handle._array = array
        return True if inputs is None else [oar.to_tensor(array) for array in made]

    def clone(self, stream: Any = None) -> Predictor:
        """Another predictor of the same model."""
        return Predictor(self._config)

    def try_shrink_memory(self) -> int:
        """Returns cached memory to the system; returns the number of bytes."""
        return _C.release_cached_memory()

    def clear_intermediate_tensor(self) -> None:
        """Nothing to do: nothing is kept between runs."""


class PredictorPool:
    """Several predictors of one model, for threads.

    Args:
        config: the ``Config`` of the model.
        size: the number of predictors.

    Examples:
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> oar.static.save_inference_model(path, [x], [y], executor, program=main)
        >>> oar.disable_static()
        >>> config = oar.inference.Config(path + '.pdmodel', path + '.pdiparams')
        >>> pool = oar.inference.PredictorPool(config, 2)
        >>> pool.retrieve(1).get_input_names()
        ['x']
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        self._predictors = [Predictor(config) for _ in range(size)]

    def retrieve(self, index: int) -> Predictor:
        """The predictor of this number."""
        return self._predictors[index]

    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """The predictor of a model.

    Args:
        config: the ``Config`` of the model.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> oar.static.save_inference_model(path, [x], [y], executor, program=main)
        >>> oar.disable_static()
        >>> config = oar.inference.Config(path + '.pdmodel', path + '.pdiparams')
        >>> predictor = oar.inference.create_predictor(config)
        >>> predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(np.ones([1, 3], 'float32'))
        >>> _ = predictor.run()
        >>> predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().tolist()
        [[2.0, 2.0, 2.0]]
    """
    return Predictor(config)


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """How many bytes an element has.

    Args:
        dtype: a ``DataType``.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.inference.get_num_bytes_of_data_type(oar.inference.DataType.FLOAT32)
        4
    """
    return oar.zeros([], _C.dtype(dtype.value)).element_size()
