"""Paddle's incubating names."""

from oar.incubate import asp, autograd, autotune, cc, distributed, jit, layers, nn, optimizer
from oar.incubate.jit import inference
from oar.incubate.operators import *  # noqa: F403
from oar.incubate.operators import __all__ as _OPERATORS
from oar.incubate.optimizer import LookAhead, ModelAverage

__all__ = ["LookAhead", "ModelAverage", "asp", "autograd", "autotune", "cc", "distributed", "inference", "jit", "layers", "nn", "optimizer", *_OPERATORS]
