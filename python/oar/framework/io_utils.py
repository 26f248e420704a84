"""Which variables of a program are saved, under Paddle's inner path."""

from __future__ import annotations

from typing import Any

from oar.framework.parameter import Parameter
from oar.static.checkpoints import is_parameter, is_persistable
from oar.static.variable import Variable

__all__ = ["Parameter", "Variable", "is_parameter", "is_persistable", "is_pir_fetch_var"]


def is_pir_fetch_var(value: Any) -> bool:
    """Whether a variable only stands for a result that is fetched. Programs of Oar have none of these.

    Args:
        value: the variable.

    Returns:
        False.

    Examples:
        >>> import oar
        >>> from oar.framework.io_utils import is_pir_fetch_var
        >>> is_pir_fetch_var(oar.ones([2]))
        False
    """
    return False
