"""The functions on tensors, under another of Paddle's inner paths."""

from oar.tensor import __getattr__ as __getattr__
