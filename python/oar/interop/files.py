"""What kind of file this is, and the model in it."""

from __future__ import annotations

import os
from typing import NamedTuple

from oar import _C
from oar.interop.graph import GraphModel

__all__ = ["FileGuess", "guess", "load"]


class FileGuess(NamedTuple):
    """What ``guess`` found out about a file.

    Args:
        format: one word, such as ``'onnx'``, ``'oar'``, ``'paddle-pir'``, ``'safetensors'``; ``'unknown'`` if the kind is not known.
        use: ``'model'``, ``'tensors'`` or ``'other'``.
        path: the file that was meant: for a prefix or a folder that of the program.

    Examples:
        >>> import oar
        >>> oar.interop.FileGuess('onnx', 'model', 'net.onnx').use
        'model'
    """

    format: str
    use: str
    path: str


def guess(path: str | os.PathLike[str]) -> FileGuess:
    """What kind of file this is, by its content.

    Args:
        path: a file, the prefix of a model's files, or a folder with one model.

    Returns:
        a ``FileGuess``.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'weights')
        >>> oar.save({'x': oar.ones([2])}, path + '.safetensors')
        >>> oar.interop.guess(path + '.safetensors')[:2]
        ('safetensors', 'tensors')
    """
    return FileGuess(*_C.guess_file(os.fspath(path)))


def load(path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None, method: str = "forward") -> GraphModel:
    """A model of any format that Oar runs: its own, Paddle's, ONNX, TensorFlow, Keras, TFLite, Caffe, ``torch.export``. The content decides which.

    Args:
        path: the file; the prefix of several files; or a folder with one model.
        weights: the second file of a model that has two, if it is not beside the first.
        method: the method of an ``.oar`` file.

    Returns:
        a model to call.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'net.oar')
        >>> oar.jit.save(oar.nn.Linear(3, 2), path, input_spec=[oar.static.InputSpec(['batch', 3], 'float32', 'x')])
        >>> model = oar.interop.load(path)
        >>> model.format, model.shapes
        ('oar', {'x': ['batch', 3]})
        >>> model(oar.ones([4, 3]))[0].shape
        [4, 2]
    """
    return GraphModel(_C.any_model(os.fspath(path), method, "" if weights is None else os.fspath(weights)))
