"""Paddle's incubating optimisers."""

from oar.incubate.optimizer import functional
from oar.incubate.optimizer.averages import LookAhead, ModelAverage
from oar.optimizer import LBFGS

__all__ = ["LBFGS", "LookAhead", "ModelAverage", "functional"]
