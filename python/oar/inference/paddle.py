"""Inference models of PaddlePaddle: ``.pdmodel`` and PIR's ``.json``, each with its ``.pdiparams``."""

from __future__ import annotations

import os
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.interop.graph import GraphModel

__all__ = ["Model", "load", "save"]


class Model(GraphModel):
    """An inference model of Paddle, fed in the order of ``inputs`` or by name.

    It becomes a program when it first runs. Inputs that do not fit that program, for example images of a size that the network treats
    differently, get a program of their own. It is for inference: its weights are constants.

    Args:
        program: the bytes of the ``.pdmodel`` or ``.json`` file.
        parameters: the bytes of the ``.pdiparams`` file.

    Examples:
        >>> import oar
        >>> model = oar.inference.paddle.load('inference')  # doctest: +SKIP
        >>> model.inputs, model.outputs  # doctest: +SKIP
        (['x'], ['fetch_name_0'])
        >>> scores, = model(oar.randn([1, 3, 224, 224]))  # doctest: +SKIP
    """

    _place = "paddle"

    def __init__(self, program: bytes, parameters: bytes) -> None:
        native, self._file = _C.paddle_model(program, parameters)
        super().__init__(native)
        self.signature: list[tuple[str, str, list[int | str]]] = native.inputs

    def open_program(self) -> Any:
        """The program for all sizes that the file leaves open. An error if an op needs to know one of them."""
        return _C.paddle_open_program(self._file)

    def parameters(self) -> dict[str, Tensor]:
        """The weights by their names in the file."""
        return _C.paddle_parameters(self._file)


def read(path: str) -> bytes:
    """The bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def program_file(prefix: str) -> str | None:
    """The file of a program of Paddle with this prefix; None if there is none, or if Oar wrote it."""
    for end in (".json", ".pdmodel"):
        if os.path.isfile(prefix + end) and _C.is_paddle_program(read(prefix + end)):
            return prefix + end
    return None


def load(prefix: str | os.PathLike[str], parameters: str | os.PathLike[str] | None = None) -> Model:
    """The inference model of these files.

    Loading runs no code from the files. An op that cannot be imported is an error, when the model first runs, that lists all such ops.

    Args:
        prefix: the path of both files without their endings, or that of the program.
        parameters: the file of parameters, if its name differs in more than the ending.

    Returns:
        a ``Model``.

    Examples:
        >>> import oar
        >>> model = oar.inference.paddle.load('inference')  # doctest: +SKIP
    """
    given = os.fspath(prefix)
    stem, end = os.path.splitext(given)
    file = given if end in (".json", ".pdmodel") and os.path.isfile(given) else program_file(given)
    if file is None:
        raise FileNotFoundError(f"[paddle.load] there is no program of Paddle {given}.json or {given}.pdmodel.")
    weights = os.path.splitext(file)[0] + ".pdiparams" if parameters is None else os.fspath(parameters)
    if parameters is not None and not os.path.isfile(weights):
        raise FileNotFoundError(f"[paddle.load] there is no file {weights}.")
    return Model(read(file), read(weights) if os.path.isfile(weights) else b"")


def save(function: Any, prefix: str | os.PathLike[str], input_spec: Any, *, legacy: bool = False) -> None:
    """Write a layer or a function as an inference model that Paddle reads: ``prefix.json`` and ``prefix.pdiparams``.

    Ops without a counterpart are an error that lists them all; nothing is written then. Call ``eval()`` on a layer first.

    Args:
        function: the layer or function.
        prefix: the path of the files without their endings.
        input_spec: an ``InputSpec`` per argument; sizes that are None stay open.
        legacy: write ``prefix.pdmodel``, which Paddle 2 reads, too, instead of ``prefix.json``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> net = oar.nn.Sequential(oar.nn.Linear(3, 2), oar.nn.ReLU())
        >>> path = os.path.join(tempfile.mkdtemp(), 'net')
        >>> oar.inference.paddle.save(net, path, [oar.static.InputSpec([None, 3], 'float32', 'x')])
        >>> result, = oar.inference.paddle.load(path)(oar.ones([4, 3]))
        >>> result.shape
        [4, 2]
    """
    from oar.framework._replace import replace_files

    called = function.forward if isinstance(function, oar.nn.Layer) else function
    path = os.fspath(prefix)
    file = path + (".pdmodel" if legacy else ".json")
    with oar.no_grad():
        program, parameters = _C.paddle_files(oar.jit.capture(called, input_spec)._native, file)
    replace_files({file: lambda file: file.write(program), path + ".pdiparams": lambda file: file.write(parameters)})
