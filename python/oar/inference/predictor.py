"""A loaded model, its inputs and outputs by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import oar
from oar import _C
from oar._lazy import np
from oar.framework.oar_file import is_oar_path
from oar.inference import paddle
from oar.inference.config import Config, DataType
from oar.inference.mixed import LowPrecision, bound_in, load_bound
from oar.inference.op_times import OpTime, add_op_times
from oar.interop.any_model import load as any_model
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

    def share_external_data(self, data: Any) -> None:
        """The content for the next run, from a tensor or an array."""
        self.copy_from_cpu(data.numpy() if isinstance(data, oar.Tensor) else data)

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
        self._config = config
        self._times: dict[str, OpTime] = {}
        self._low: LowPrecision | None = None
        program, params = config.prog_file(), config.params_file()
        if config._buffers is not None:
            self._load_contents(*config._buffers)
        elif program is None:
            raise ValueError("[create_predictor] the Config has no model. Give it an .oar file, or prog_file and params_file.")
        elif params is not None:
            self._load_contents(load_from_file(program), load_from_file(params) if os.path.isfile(params) else None, params)
        elif is_oar_path(program):
            self._take_oar(lambda executor: load_inference_model(program, executor))
            self._prepare_low(lambda: load_bound(program, None))
        else:
            self._take_model(any_model(program))

    def _load_contents(self, program: bytes, params: bytes | None, where: str = "set_model_buffer") -> None:
        if _C.is_paddle_program(program):
            self._take_model(paddle.Model(program, params or b""))
            return
        if params is None:
            raise ValueError(f"[create_predictor] there is no file {where}.")
        self._take_oar(lambda executor: load_inference_model(None, executor, model_filename=program, params_filename=params))
        self._prepare_low(lambda: bound_in(program, params, where))

    def _take_oar(self, load: Any) -> None:
        self._model = None
        self._scope, self._executor = Scope(), Executor()
        with written_elsewhere(), scope_guard(self._scope):
            self._program, feeds, self._fetches = load(self._executor)
        self._inputs = {name: Tensor(name) for name in feeds}
        self._outputs = {name: Tensor(name) for name in self._program._fetch_names}

    def _take_model(self, model: Any) -> None:
        """A model of another framework."""
        self._model = model
        self._inputs = {name: Tensor(name) for name in model.inputs}
        self._outputs = {name: Tensor(name) for name in model.outputs}
        self._prepare_low(lambda: model)

    def _prepare_low(self, source: Any) -> None:
        if self._config._low_precision is not None:
            self._low = LowPrecision(source(), self._config._low_precision, self._config._low_ops)

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
        with self._settings(), written_elsewhere():
            made = self._compute(feed)
        for handle, array in zip(self._outputs.values(), made):
            handle._array = array
        return True if inputs is None else [oar.to_tensor(array) for array in made]

    def _compute(self, feed: dict[str, Any]) -> list[Any]:
        if self._low is not None:
            return [tensor.numpy() for tensor in self._low.run(feed)]
        if self._model is None:
            return self._executor.run(self._program, feed=feed, fetch_list=self._fetches, scope=self._scope)
        return [tensor.numpy() for tensor in self._model(feed)]

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Threads, flags and the profile that the config wishes for. They are the process's, so they are put back."""
        threads, flags = oar.get_num_threads(), self._config.run_flags()
        before = oar.get_flags(list(flags)) if flags else {}
        timed = self._config.profile_enabled() and not _C.profile_is_running()
        try:
            oar.set_num_threads(self._config.cpu_math_library_num_threads())
            if flags:
                oar.set_flags(flags)
            if timed:
                _C.profile_start(True, False, False, False, oar.get_flags("profile_events")["profile_events"])
            yield
        finally:
            if timed:
                add_op_times(self._times, _C.profile_stop()[0])
            if before:
                oar.set_flags(before)
            oar.set_num_threads(threads)

    def warm_up(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compile for inputs of these shapes, by name, by a run on zeros. Contents of inputs and outputs stay.

        Args:
            shapes: the shape of each input.
        """
        if set(shapes) != set(self._inputs):
            raise ValueError(f"[Predictor.warm_up] shapes has {', '.join(shapes) or 'nothing'}; the inputs are {', '.join(self._inputs)}.")
        feed = {name: np.zeros([int(size) for size in shapes[name]], self._dtype_of(name)) for name in self._inputs}
        with self._settings(), written_elsewhere():
            self._compute(feed)
        self._times.clear()

    def _dtype_of(self, name: str) -> str:
        if self._model is None:
            return self._program.global_block().var(name).dtype.name
        kinds = {given: kind for given, kind, _ in self._model._native.inputs}
        return kinds[name] or "float32"

    def op_times(self) -> dict[str, OpTime]:
        """After ``Config.enable_profile``: for each op how often it was called in all runs, and for how many milliseconds."""
        return dict(sorted(self._times.items(), key=lambda item: -item[1].milliseconds))

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
