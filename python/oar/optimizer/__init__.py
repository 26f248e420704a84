"""Optimizers and learning-rate schedules."""

from oar.optimizer import lr
from oar.optimizer.adam import Adam, AdamW
from oar.optimizer.adaptive import Adadelta, Adagrad, Adamax, RMSProp
from oar.optimizer.averaged import ASGD, Rprop
from oar.optimizer.lbfgs import LBFGS
from oar.optimizer.optimizer import Optimizer
from oar.optimizer.sgd import SGD, Momentum
from oar.optimizer.variants import Lamb, NAdam, RAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Lamb",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "SGD",
]
