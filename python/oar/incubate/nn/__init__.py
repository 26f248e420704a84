"""Layers and functions that do several steps of a network at once."""

from oar.incubate.nn import functional
from oar.incubate.nn.layer.fused import *  # noqa: F403
from oar.incubate.nn.layer.fused import __all__ as _LAYERS

__all__ = ["functional", *_LAYERS]
