"""Which variables of a program are saved, and their contents, under Paddle's inner path."""

from __future__ import annotations

from typing import Any

from oar._lazy import np
from oar.framework.parameter import Parameter
from oar.static.checkpoints import is_parameter, is_persistable
from oar.static.scope import global_scope
from oar.static.variable import Variable

__all__ = ["Parameter", "Variable", "get_value", "is_parameter", "is_persistable", "is_pir_fetch_var", "set_value"]


def _found(var: Any, scope: Any) -> Any:
    found = (global_scope() if scope is None else scope).find_var(var.name)
    if found is None:
        raise ValueError(f"the scope has no variable {var.name!r}. Run the startup program first.")
    return found.get_tensor()


def get_value(var: Any, scope: Any = None) -> Any:
    """The content of a program's variable.

    Args:
        var: the variable.
        scope: where its content is; the global scope if None.
    """
    return _found(var, scope)


def set_value(var: Any, value: Any, scope: Any = None) -> None:
    """Replaces the content of a program's variable.

    Args:
        var: the variable.
        value: an array or a tensor of the same shape.
        scope: where its content is; the global scope if None.
    """
    held, array = _found(var, scope), np.asarray(value)
    wanted = list(np.asarray(held).shape)
    if list(array.shape) != wanted:
        raise ValueError(f"{var.name} expected a shape {wanted}, but the received shape is {list(array.shape)}.")
    held.set(array)


def is_pir_fetch_var(value: Any) -> bool:
    """Whether a variable only stands for a result that is fetched. Programs here have none of those."""
    return False
