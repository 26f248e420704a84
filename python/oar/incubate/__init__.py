"""Paddle's incubating names."""

from oar.incubate import autograd

__all__ = ["autograd"]
