"""Which variables of a program are saved, under Paddle's inner path."""

from oar.framework.parameter import Parameter
from oar.static.checkpoints import is_parameter, is_persistable
from oar.static.variable import Variable

__all__ = ["Parameter", "Variable", "is_parameter", "is_persistable"]
