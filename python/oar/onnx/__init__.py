"""Models in the ONNX format."""

from oar.onnx.export import export
from oar.onnx.model import Model, load

__all__ = ["Model", "export", "load"]
