"""ONNX models that run as programs of Oar."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import oar
from oar import _C
from oar._C import Tensor

__all__ = ["Model", "load"]


class Model:
    """An ONNX model, fed in the order of ``inputs`` or by name.

    It becomes a program when it first runs. Inputs that do not fit that program, for example images of a size that the network treats
    differently, get a program of their own.

    Args:
        path: the file. External data is read from its folder.

    Examples:
        >>> import oar
        >>> model = oar.onnx.load('model.onnx')  # doctest: +SKIP
        >>> model.inputs, model.outputs  # doctest: +SKIP
        (['image'], ['scores'])
        >>> scores, = model(oar.randn([1, 3, 224, 224]))  # doctest: +SKIP
        >>> scores, = model({'image': oar.randn([1, 3, 224, 224])})  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = Path(path)
        if not file.is_file():
            what = "is a folder" if file.is_dir() else "does not exist"
            raise FileNotFoundError(f"[onnx.load] {str(file)!r} {what}.")
        self._native = _C.onnx_model(file.read_bytes(), str(file.parent))
        self.inputs: list[str] = self._native.inputs
        self.outputs: list[str] = self._native.outputs

    def __call__(self, *inputs: Any) -> list[Tensor]:
        """Run on tensors or arrays; return a tensor for each of ``outputs``."""
        return self._native.run(self._ordered(inputs))

    def program(self, *inputs: Any) -> Any:
        """The program for inputs like these."""
        return self._native.program(self._ordered(inputs))

    def _ordered(self, inputs: tuple[Any, ...]) -> list[Tensor]:
        given: Any = inputs
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            given = inputs[0]
            wrong = [name for name in self.inputs if name not in given] + [name for name in given if name not in self.inputs]
            if wrong:
                raise ValueError(f"[onnx] the inputs are {self.inputs}; {wrong[0]!r} is missing or not one of them.")
            given = [given[name] for name in self.inputs]
        return [value if isinstance(value, Tensor) else oar.to_tensor(value) for value in given]

    def __repr__(self) -> str:
        return f"Model(inputs={self.inputs}, outputs={self.outputs})"


def load(path: str | os.PathLike[str]) -> Model:
    """The model of an ONNX file.

    Loading runs no code from the file. An operator that cannot be imported is an error, when the model first runs, that lists all such
    operators.

    Args:
        path: the file.

    Returns:
        a ``Model``.

    Examples:
        >>> import oar
        >>> model = oar.onnx.load('model.onnx')  # doctest: +SKIP
    """
    return Model(path)
