"""Models and weights in the files of other frameworks. ONNX has a module of its own, ``oar.onnx``; ``oar.load`` reads PyTorch's files."""

from oar.interop.conversion import Conversion, convert
from oar.interop.files import FileGuess, guess, load
from oar.interop.gguf import GgufFile, load_gguf
from oar.interop.graph import GraphModel, TorchModel, load_caffe, load_keras, load_tensorflow, load_tflite, load_torch
from oar.interop.torch_state import torch_state

__all__ = [
    "Conversion", "FileGuess", "GgufFile", "GraphModel", "TorchModel", "convert", "guess", "load", "load_caffe", "load_gguf",
    "load_keras", "load_tensorflow", "load_tflite", "load_torch", "torch_state",
]  # fmt: skip
