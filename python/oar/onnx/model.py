"""ONNX models that run as programs of Oar."""

from __future__ import annotations

import os
from pathlib import Path

from oar import _C
from oar.interop.graph import GraphModel, content_of

__all__ = ["Model", "load"]


class Model(GraphModel):
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

    _place = "onnx"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        file = Path(path)
        super().__init__(_C.onnx_model(content_of(file, "onnx.load"), str(file.parent)))


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
