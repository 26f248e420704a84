"""Graphs of other frameworks that run as programs of Oar."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import oar
from oar import _C
from oar._C import Tensor

__all__ = ["GraphModel", "TorchModel", "load_caffe", "load_keras", "load_tensorflow", "load_tflite", "load_torch"]


class GraphModel:
    """A model that runs, of any format, fed in the order of ``inputs`` or by name; ``load`` and the other ``load_`` functions return it.

    One of another framework becomes a program when it first runs. Inputs that do not fit that program, for example images of another
    size, get a program of their own. ``shapes`` and ``dtypes`` hold what the file says of the inputs: an open size is text, its name; None
    is anything. ``format`` and ``path`` tell which file ``load`` found; they are ``'unknown'`` and ``''`` for other functions.

    Args:
        native: what the extension made of the files.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_caffe('deploy.prototxt', 'net.caffemodel')  # doctest: +SKIP
        >>> model.inputs, model.outputs, model.shapes  # doctest: +SKIP
        (['data'], ['prob'], {'data': [1, 3, 224, 224]})
        >>> scores, = model(oar.randn([1, 3, 224, 224]))  # doctest: +SKIP
        >>> scores, = model({'data': oar.randn([1, 3, 224, 224])})  # doctest: +SKIP
    """

    # How errors begin.
    _place = "interop"

    def __init__(self, native: Any) -> None:
        self._native = native
        self.inputs: list[str] = [name for name, _, _ in native.inputs]
        self.shapes: dict[str, list[int | str] | None] = {name: shape for name, _, shape in native.inputs}
        self.dtypes: dict[str, str | None] = {name: dtype for name, dtype, _ in native.inputs}
        self.format: str = native.kind
        self.path: str = native.path

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs. Where only a run tells what they are, as in lists of TorchScript, those of the newest one."""
        names: list[str] = self._native.outputs
        return names

    def __call__(self, *inputs: Any, **named: Any) -> list[Any]:
        """Run on tensors or arrays; return a tensor for each of ``outputs``.

        A module of TorchScript takes what its ``forward`` takes: numbers, text, None, lists, tuples and dictionaries too, and arguments by
        name. A model of ONNX takes lists where its file has sequences, and None for an optional without content; it returns the same.
        """
        native, tensors = self._bound(inputs, named)
        results: list[Any] = native.run(tensors)
        return results

    def program(self, *inputs: Any, **named: Any) -> Any:
        """The program for inputs like these."""
        native, tensors = self._bound(inputs, named)
        return native.program(tensors)

    def _bound(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, list[Tensor]]:
        """The model for arguments of this structure, and the tensors in them."""
        # Entries of lists and tuples may come one after the other, too: they are inputs such as "pair.0".
        flat = len(inputs) == len(self.inputs) and any("." in name for name in self.inputs) and not any(map(_is_container, inputs))
        if not self._native.takes_more_than_tensors or (flat and not named):
            if named:
                raise TypeError(f"[{self._place}] the model takes no arguments by name: pass a dict of {self.inputs}.")
            return self._native, self._tensors(self._ordered(inputs))
        tensors: list[Tensor] = []
        if len(inputs) == 1 and isinstance(inputs[0], Mapping) and not named and set(inputs[0]) == set(self.inputs):
            if not any(map(_is_container, inputs[0].values())):
                return self._native, self._tensors(self._ordered(inputs))
            arguments: dict[str, Any] = {"args": [], "kwargs": _forms(inputs[0], tensors)}
        else:
            arguments = {"args": [_form(value, tensors) for value in inputs], "kwargs": _forms(named, tensors)}
        return self._native.arranged(json.dumps(arguments)), tensors

    @staticmethod
    def _tensors(values: Any) -> list[Tensor]:
        return [value if isinstance(value, Tensor) else oar.to_tensor(value) for value in values]

    def _ordered(self, inputs: tuple[Any, ...]) -> Any:
        given: Any = inputs
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            given = inputs[0]
            wrong = [name for name in self.inputs if name not in given] + [name for name in given if name not in self.inputs]
            if wrong:
                raise ValueError(f"[{self._place}] the inputs are {self.inputs}; {wrong[0]!r} is missing or not one of them.")
            given = [given[name] for name in self.inputs]
        return given

    def __repr__(self) -> str:
        return f"{type(self).__name__}(inputs={self.shapes}, outputs={self.outputs})"


def content_of(path: str | os.PathLike[str], function: str) -> bytes:
    """The bytes of a file."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise FileNotFoundError(f"[{function}] {str(file)!r} {what}.")
    return file.read_bytes()


def load_caffe(prototxt: str | os.PathLike[str], weights: str | os.PathLike[str]) -> GraphModel:
    """The model of two files of Caffe.

    Loading runs no code from the files. Layers that cannot be imported are an error that lists all of them.

    Args:
        prototxt: the net for use, often called ``deploy.prototxt``.
        weights: its ``.caffemodel``, of either version of the format.

    Returns:
        a ``GraphModel``.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_caffe('deploy.prototxt', 'net.caffemodel')  # doctest: +SKIP
    """
    return GraphModel(_C.caffe_model(content_of(prototxt, "interop.load_caffe"), content_of(weights, "interop.load_caffe")))


def load_keras(path: str | os.PathLike[str]) -> GraphModel:
    """The model of a file of Keras, or a model of layers of TensorFlow.js.

    The content says which of them it is. Loading runs no code from the files and reads none outside the model's folder: a ``Lambda``, whose
    code is in the file, is an error. Layers that cannot be imported are an error that lists all of them.

    Args:
        path: a ``.keras`` archive, an ``.h5`` file with a whole model, or a ``model.json`` with its weights beside it.

    Returns:
        a ``GraphModel``. Inputs are called as their layers, outputs as the layers that make them.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_keras('net.keras')  # doctest: +SKIP
        >>> scores, = model(oar.randn([1, 224, 224, 3]))  # doctest: +SKIP
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"[interop.load_keras] {str(path)!r} is no file.")
    return GraphModel(_C.keras_model(os.fspath(path)))


def load_tensorflow(path: str | os.PathLike[str], signature: str | None = None, *, inputs: Sequence[str] = (),
                    outputs: Sequence[str] = ()) -> GraphModel:
    """The model of a frozen graph of TensorFlow, a SavedModel, or a model of TensorFlow.js.

    The content says which of them it is. Loading runs no code from the files and reads none outside the model's folder. Operators that
    cannot be imported are an error that lists all of them.

    Args:
        path: a ``.pb`` file, the folder of a SavedModel, or a ``model.json`` with its weights beside it.
        signature: which signature of a SavedModel; by default ``serving_default``, or the only one.
        inputs: names of tensors that are the inputs, such as ``'image'`` or ``'block/conv:0'``; by default those of the signature, or
            the placeholders that the outputs need.
        outputs: the same for the outputs; by default those of the signature, or what no other node reads.

    Returns:
        a ``GraphModel``. Inputs and outputs of a signature are in the order of their names.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_tensorflow('saved_model')  # doctest: +SKIP
        >>> model = oar.interop.load_tensorflow('frozen.pb', outputs=['logits'])  # doctest: +SKIP
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"[interop.load_tensorflow] {str(path)!r} does not exist.")
    return GraphModel(_C.tensorflow_model(os.fspath(path), signature or "", list(inputs), list(outputs)))


def load_tflite(path: str | os.PathLike[str]) -> GraphModel:
    """The model of a ``.tflite`` file.

    Loading runs no code from the file. Operators that cannot be imported are an error that lists all of them. A quantised model computes
    with the real numbers that its integers stand for, rounded after each operator as the file says.

    Args:
        path: the file.

    Returns:
        a ``GraphModel``.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_tflite('model.tflite')  # doctest: +SKIP
    """
    return GraphModel(_C.tflite_model(content_of(path, "interop.load_tflite")))


class TorchModel(GraphModel):
    """A ``GraphModel`` with the parameters and buffers of the module, by their names in it, as ``weights``.

    Args:
        native: what the extension made of the file.
        weights: the tensors by name.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_torch('model.pt2')  # doctest: +SKIP
        >>> model.weights['fc.weight'].shape  # doctest: +SKIP
        [1000, 512]
    """

    def __init__(self, native: Any, weights: dict[str, Tensor]) -> None:
        super().__init__(native)
        self.weights = weights


def _is_container(value: Any) -> bool:
    return value is None or isinstance(value, (list, tuple, Mapping))


def _forms(named: Mapping[str, Any], tensors: list[Tensor]) -> dict[str, Any]:
    return {name: _form(value, tensors) for name, value in named.items()}


def _form(value: Any, tensors: list[Tensor]) -> Any:
    """An argument with its tensors apart, as JSON."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _form(oar.to_tensor(value, dtype="float64"), tensors)
    if isinstance(value, Mapping):
        return {"dict": [[_form(key, tensors), _form(entry, tensors)] for key, entry in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_form(entry, tensors) for entry in value]}
    if isinstance(value, list):
        return [_form(entry, tensors) for entry in value]
    tensors.append(value if isinstance(value, Tensor) else oar.to_tensor(value))
    return {"tensor": True}


def load_torch(path: str | os.PathLike[str]) -> TorchModel:
    """The model of a file of PyTorch: what ``torch.export.save`` or ``torch.jit.save`` wrote.

    Loading runs no code from the file as Python: the source in archives of TorchScript is read as what it describes. Ops that cannot be
    imported are an error that lists all of them. Tensors that ``torch.save`` wrote are for ``oar.load``.

    Args:
        path: the file, often with the ending ``.pt2`` or ``.pt``.

    Returns:
        a ``TorchModel``. Its outputs are those of the module's containers, one after the other, named by their place in them.

    Examples:
        >>> import oar
        >>> model = oar.interop.load_torch('model.pt2')  # doctest: +SKIP
        >>> scores, = model(oar.randn([1, 3, 224, 224]))  # doctest: +SKIP
        >>> script = oar.interop.load_torch('speech.pt')  # doctest: +SKIP
        >>> probability, = script(oar.randn([1, 512]), 16000)  # doctest: +SKIP
    """
    return TorchModel(*_C.torch_model(content_of(path, "interop.load_torch")))
