"""Models in the ONNX format."""

from oar.onnx.model import Model, load

__all__ = ["Model", "load"]
