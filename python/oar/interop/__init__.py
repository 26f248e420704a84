"""Models and weights in the files of other frameworks. ONNX has a module of its own, ``oar.onnx``."""

from oar.interop.graph import GraphModel, load_caffe, load_tflite

__all__ = ["GraphModel", "load_caffe", "load_tflite"]
