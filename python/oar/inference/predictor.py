"""A loaded model, its inputs and outputs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import oar
from oar import _C
from oar._lazy import np
from oar.inference.config import Config, DataType
from oar.inference.op_times import OpTime, add_op_times
from oar.inference.runnable import Runnable, load_runnable
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
        self._content: oar.Tensor | None = None

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
        with written_elsewhere():
            self._hold(oar.to_tensor(np.asarray(data)))

    def share_external_data(self, data: Any) -> None:
        """The content for the next run, from a tensor or an array, whose memory is read by the run: it is not copied.

        Args:
            data: a tensor; or an array, which is copied only if its elements are not in order or cannot be written.
        """
        with written_elsewhere():
            if isinstance(data, np.ndarray):
                plain = data.flags.c_contiguous and data.flags.writeable and data.dtype.isnative
                data = oar.from_dlpack(data) if plain else oar.to_tensor(data)
            self._hold(data)

    def _hold(self, tensor: oar.Tensor) -> None:
        self._content = tensor if self._shape is None else oar.reshape(tensor, self._shape)

    def copy_to_cpu(self) -> Any:
        """The content, after a run."""
        if self._content is None:
            raise ValueError(f"[copy_to_cpu] {self._name!r} has no content yet. Call run() first.")
        return self._content.numpy()

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._content.shape) if self._content is not None else list(self._shape or [])

    def type(self) -> DataType:
        """Its dtype."""
        if self._content is None:
            raise ValueError(f"[type] {self._name!r} has no content yet. Call copy_from_cpu or run() first.")
        return DataType(self._content.dtype.name)


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
        self._begin(config, load_runnable(config))

    def _begin(self, config: Config, model: Runnable) -> None:
        self._config = config
        self._model = model
        self._times: dict[str, OpTime] = {}
        self._inputs = {name: Tensor(name) for name in model.inputs}
        self._outputs = {name: Tensor(name) for name in model.outputs}

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
        """Run on the content of the inputs; if called with a list of tensors, return the outputs as a list. Neither is copied."""
        if inputs is not None:
            for handle, value in zip(self._inputs.values(), inputs):
                handle._content = value if isinstance(value, oar.Tensor) else oar.to_tensor(value)
        given = [handle._content for handle in self._inputs.values() if handle._content is not None]
        if len(given) < len(self._inputs):
            missing = [name for name, handle in self._inputs.items() if handle._content is None]
            raise ValueError(
                f"[Predictor.run] the inputs {', '.join(missing)} have no content. Call copy_from_cpu first."
            )
        if self._needs_settings():
            with self._settings():
                made = self._model.run(given)
        else:
            made = self._model.run(given)
        for handle, tensor in zip(self._outputs.values(), made):
            handle._content = tensor
        return True if inputs is None else made

    def _needs_settings(self) -> bool:
        config = self._config
        return config.profile_enabled() or bool(config.run_flags()) or config.cpu_math_library_num_threads() != oar.get_num_threads()

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Threads, flags and the profile that the config wishes for. They are the process's, so they are put back."""
        threads, wanted, flags = oar.get_num_threads(), self._config.cpu_math_library_num_threads(), self._config.run_flags()
        before = oar.get_flags(list(flags)) if flags else {}
        timed = self._config.profile_enabled() and not _C.profile_is_running()
        try:
            if wanted != threads:
                oar.set_num_threads(wanted)
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
            if wanted != threads:
                oar.set_num_threads(threads)

    def warm_up(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Compile for inputs of these shapes, by name, by a run on zeros. Contents of inputs and outputs stay.

        Args:
            shapes: the shape of each input.
        """
        if set(shapes) != set(self._inputs):
            raise ValueError(f"[Predictor.warm_up] shapes has {', '.join(shapes) or 'nothing'}; the inputs are {', '.join(self._inputs)}.")
        with self._settings(), written_elsewhere():
            self._model.run([oar.zeros([int(size) for size in shapes[name]], self._model.dtype_of(name)) for name in self._inputs])
        self._times.clear()

    def op_times(self) -> dict[str, OpTime]:
        """After ``Config.enable_profile``: for each op how often it was called in all runs, and for how many milliseconds."""
        return dict(sorted(self._times.items(), key=lambda item: -item[1].milliseconds))

    def clone(self, stream: Any = None) -> Predictor:
        """Another predictor of the same model, for another thread: program and weights are shared, inputs and outputs are its own."""
        other = Predictor.__new__(Predictor)
        other._begin(self._config, self._model)
        return other

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
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

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
