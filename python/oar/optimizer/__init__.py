"""Optimizers and learning-rate schedules."""

from oar.optimizer import lr
from oar.optimizer.adam import Adam, AdamW
from oar.optimizer.optimizer import Optimizer
from oar.optimizer.sgd import SGD, Momentum

__all__ = ["Adam", "AdamW", "Momentum", "Optimizer", "SGD"]
