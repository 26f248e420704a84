"""Paddle's incubating names."""

from oar.incubate import autograd, layers, nn
from oar.incubate.operators import *  # noqa: F403
from oar.incubate.operators import __all__ as _OPERATORS

__all__ = ["autograd", "layers", "nn", *_OPERATORS]
