"""Which variables of a program are saved, under Paddle's inner path."""

from oar.framework.parameter import Parameter
from oar.static.checkpoints import is_parameter, is_persistable
from oar.static.variable import Variable

__all__ = ["Parameter", "Variable", "is_parameter", "is_persistable", "is_pir_fetch_var"]


def is_pir_fetch_var(value: Variable) -> bool:
    """Whether a variable is the result of a call that fetches: False, since results are fetched without one.

    Args:
        value: the variable.
    """
    return False
