"""An ``Optimizer`` in a static program: it appends ops instead of running them, and its learning rate is in a scope."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework.parameter import dtype_name
from oar.optimizer.lr import LRScheduler

if TYPE_CHECKING:
    from oar.optimizer.optimizer import Optimizer

__all__ = ["append_backward", "append_update", "feed_learning_rate", "is_variable", "set_learning_rate", "startup_value"]


def is_variable(tensor: Any) -> bool:
    """Whether it is a variable of a program, which has no value now."""
    if not isinstance(tensor, Tensor) or _C.capture_of(tensor) is None:  # eager: `oar.static` is not even imported
        return False
    return oar.static.program.program_of(tensor) is not None


def append_backward(
    optimizer: Optimizer, loss: Tensor, parameters: Any, no_grad_set: Any
) -> list[tuple[Tensor, Tensor]]:
    """Appends the backward of a loss to its program; returns the parameters and their gradients."""
    listed = parameters if parameters is not None else optimizer._flat or loss.block.program.all_parameters()
    params_grads = oar.static.append_backward(loss, listed, no_grad_set)
    if not params_grads:
        warnings.warn("minimize: no parameter of the program that is trained takes part in the loss.", stacklevel=3)
    return params_grads


def append_update(
    optimizer: Optimizer, params_grads: Sequence[tuple[Tensor, Tensor]], unless: Tensor | None = None
) -> list[Any]:
    """Appends the update of parameters to their program; returns its ops. Runs where ``unless`` is true change nothing."""
    program = oar.static.default_main_program()
    if not params_grads:
        return []
    known = {id(param) for param in optimizer._flat}
    new = [param for param, _ in params_grads if id(param) not in known]
    if new:
        optimizer._add_param_group({"params": new}, set_factor=False)
    if optimizer not in program._optimizers:
        program._optimizers.append(optimizer)
    given = {id(param): grad for param, grad in params_grads}
    before = program.num_ops()
    with program._role("update"), oar.no_grad():
        optimizer._update([given.get(id(param)) for param in optimizer._flat], unless)
    return program.global_block().ops[before:]


def set_learning_rate(variable: Tensor, rate: float) -> None:
    """Writes a learning rate to the global scope, if a startup program has run there."""
    scope = oar.static.global_scope()
    if scope.find_var(variable.name):
        scope._set(variable.name, np.array(rate, dtype=dtype_name(variable.dtype)))


def feed_learning_rate(optimizer: Optimizer, scope: Any) -> None:
    """Before a run: writes the current rate of a scheduler to the scope that the program runs in."""
    if not isinstance(optimizer._learning_rate, LRScheduler):
        return
    for factor, tensor in optimizer._lr_tensors.items():
        if is_variable(tensor):
            scope._set(tensor.name, np.array(optimizer.get_lr() * factor, dtype=dtype_name(tensor.dtype)))


def startup_value(param: Tensor) -> Tensor:
    """The variable of the startup program that holds a parameter's first value."""
    return oar.static.default_startup_program().global_block().var(param.name)
