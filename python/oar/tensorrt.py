"""Conversion for TensorRT, which runs on GPUs of NVIDIA alone: settings can be written down, conversion raises an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

__all__ = ["Input", "TensorRTConfig", "convert", "convert_loaded_model"]


def _unavailable(name: str) -> NoReturn:
    raise RuntimeError(
        f"[tensorrt.{name}] Oar is built without TensorRT, which needs a GPU. Save the model with oar.jit.save and run it by "
        "oar.inference, or write it with oar.onnx.export for TensorRT's own converter."
    )


class Input:
    """The sizes that one input can have, and numbers to try them with.

    Args:
        min_input_shape: the least size along each axis.
        max_input_shape: the largest size along each axis.
        optim_input_shape: the usual size along each axis; None is the largest.
        input_data_type: the dtype.
        input_range: the least and the largest number, for examples; None is 0 to 1, and 1 to 10 of integers.

    Examples:
        >>> import oar
        >>> image = oar.tensorrt.Input((1, 3, 8, 8), (4, 3, 8, 8))
        >>> [array.shape for array in image.generate_input_data()]
        [(1, 3, 8, 8), (4, 3, 8, 8), (4, 3, 8, 8)]
    """

    def __init__(
        self,
        min_input_shape: Sequence[int],
        max_input_shape: Sequence[int],
        optim_input_shape: Sequence[int] | None = None,
        input_data_type: str = "float32",
        input_range: Sequence[float] | None = None,
    ) -> None:
        self.min_input_shape = tuple(min_input_shape)
        self.max_input_shape = tuple(max_input_shape)
        self.optim_input_shape = self.max_input_shape if optim_input_shape is None else tuple(optim_input_shape)
        self.input_data_type = input_data_type
        self.input_range = input_range

    def generate_input_data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random arrays of the least, the usual and the largest sizes.

        Returns:
            three arrays.
        """
        whole = "int" in self.input_data_type
        low, high = self.input_range or ((1, 10) if whole else (0.0, 1.0))
        draw = np.random.default_rng()
        shapes = (self.min_input_shape, self.optim_input_shape, self.max_input_shape)
        arrays = [draw.integers(int(low), int(high), shape) if whole else draw.uniform(low, high, shape) for shape in shapes]
        return tuple(array.astype(self.input_data_type) for array in arrays)  # type: ignore[return-value]


class TensorRTConfig:
    """What a conversion would need to know.

    Args:
        inputs: an ``Input`` for each input.
        min_subgraph_size: how many operators TensorRT takes over at least.
        save_model_dir: where to save the model; None for nowhere.
        disable_ops: names of operators that stay as they are.
        kwargs: further settings.

    Examples:
        >>> import oar
        >>> config = oar.tensorrt.TensorRTConfig([oar.tensorrt.Input((1, 3), (4, 3))])
        >>> config.min_subgraph_size
        3
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        min_subgraph_size: int | None = 3,
        save_model_dir: str | None = None,
        disable_ops: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.inputs = list(inputs)
        self.min_subgraph_size = min_subgraph_size
        self.save_model_dir = save_model_dir
        self.disable_ops = disable_ops
        vars(self).update(kwargs)


def convert(function: Any = None, input_spec: Any = None, config: TensorRTConfig | None = None, **kwargs: Any) -> NoReturn:
    """Raises an error: there is no TensorRT.

    Args:
        function: the layer or function.
        input_spec: its inputs.
        config: settings.
        kwargs: further settings.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.tensorrt.convert(oar.nn.Linear(2, 2))
        ... except RuntimeError as error:
        ...     print("oar.inference" in str(error))
        ...
        True
    """
    _unavailable("convert")


def convert_loaded_model(model_dir: str, config: TensorRTConfig) -> NoReturn:
    """Raises an error: there is no TensorRT.

    Args:
        model_dir: where the model is.
        config: settings.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.tensorrt.convert_loaded_model("model", oar.tensorrt.TensorRTConfig([]))
        ... except RuntimeError as error:
        ...     print("oar.inference" in str(error))
        ...
        True
    """
    _unavailable("convert_loaded_model")
