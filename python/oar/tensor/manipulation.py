"""The functions on tensors, under another of Paddle's inner paths."""

from oar.tensor import __getattr__ as __getattr__
from oar.tensor import fill_diagonal_tensor, tensor_array_to_tensor

__all__ = ["fill_diagonal_tensor", "tensor_array_to_tensor"]
