"""Gradients as part of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor, ops
from oar.static.program import Program, _some, default_main_program, program_of

__all__ = ["append_backward", "gradients"]


def _program_of(variable: Tensor) -> Program:
    return program_of(variable) or default_main_program()


def _variables(program: Program, items: Any, what: str) -> list[Tensor]:
    """Variables that may be given by their names."""
    if items is None:
        return []
    listed = [items] if isinstance(items, (Tensor, str)) else list(items)
    found = []
    for item in listed:
        variable = program._find(item) if isinstance(item, str) else item
        if not isinstance(variable, Tensor):
            raise ValueError(f"{what}: the program has no variable {item!r}. It has {_some(v.name for v in program.list_vars())}.")
        found.append(variable)
    return found


def _named(gradient: Tensor | None, of: Tensor) -> Tensor | None:
    """A new variable for a gradient: the result may be one that already has a name."""
    if gradient is None:
        return None
    own = ops.assign(gradient)
    own.name = f"{of.name}@GRAD"
    return own


def _differentiate(
    program: Program, targets: list[Tensor], inputs: list[Tensor], cotangents: Sequence[Any], blocked: list[Tensor],
    again: bool,
) -> list[Tensor | None]:
    """``again``: the gradients can be differentiated themselves, at the price of fused ones."""
    asked = [v for v in inputs if not v.stop_gradient]
    if not asked:
        return [None] * len(inputs)
    sources = asked
    if any(program._builder.is_late(v) for v in asked):
        sources, targets = program._builder.taped(asked, targets)
    kept = [(t, c) for t, c in zip(targets, cotangents) if not t.stop_gradient]
    if not kept:
        return [None] * len(inputs)
    with program._role("backward"):
        made = iter(_C.grad([t for t, _ in kept], sources, [c for _, c in kept], True, again, True, blocked))
        return [None if v.stop_gradient else _named(next(made), v) for v in inputs]


def _trained(program: Program) -> list[Tensor]:
    parameters = program.all_parameters()
    names = {p.name for p in parameters}
    return parameters + [v for v in program._builder.trained_variables() if v.name not in names]


def append_backward(
    loss: Tensor,
    parameter_list: Any = None,
    no_grad_set: Any = None,
    callbacks: Any = None,
    checkpoints: Any = None,
    distop_context: Any = None,
) -> list[tuple[Tensor, Tensor]]:
    """Append the gradients of a loss to its program.

    Args:
        loss: a variable with one element.
        parameter_list: the parameters, or their names; when None all that are trained, and other persistable
            variables that require a gradient.
        no_grad_set: variables that no gradient passes.
        callbacks: not called; gradients are not separate ops.
        checkpoints: accepted; what is recomputed is decided when the program runs.
        distop_context: accepted for compatibility.

    Returns:
        Pairs of a parameter and its gradient.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     loss = oar.static.nn.fc(x, size=1).mean()
        ...     pairs = oar.static.append_backward(loss)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> [executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[g])[0].shape for _, g in pairs]
        [(3, 1), (1,)]
        >>> oar.disable_static()
    """
    if not isinstance(loss, Tensor) or _C.capture_of(loss) is None:
        raise TypeError(f"[append_backward] loss should be a variable of a program, but received {type(loss).__name__}.")
    if loss.size != 1:
        raise ValueError(f"[append_backward] the loss should have one element, but has shape {loss.shape}.")
    program = _program_of(loss)
    blocked = _variables(program, no_grad_set, "no_grad_set")
    names = {v.name for v in blocked}
    wanted = _trained(program) if parameter_list is None else _variables(program, parameter_list, "parameter_list")
    wanted = [p for p in wanted if not p.stop_gradient and p.name not in names]
    found = _differentiate(program, [loss], wanted, [None], blocked, again=False)
    return [(p, g) for p, g in zip(wanted, found) if g is not None]


def gradients(
    targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None
) -> list[Tensor | None]:
    """Append the gradients of targets with respect to inputs; None if a target does not depend on an input.

    Args:
        targets: variables, or one.
        inputs: variables, or one.
        target_gradients: what to start with for each target; ones when None.
        no_grad_set: variables that no gradient passes.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     x.stop_gradient = False
        ...     (slope,) = oar.static.gradients((x * x).sum(), x)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([1, 3], 'float32')}, fetch_list=[slope])[0].tolist()
        [[2.0, 2.0, 2.0]]
        >>> oar.disable_static()
    """
    listed = [targets] if isinstance(targets, Tensor) else list(targets)
    for item in listed:
        if not isinstance(item, Tensor):
            raise TypeError(f"[gradients] targets should be variables, but received {type(item).__name__}.")
    program = _program_of(listed[0])
    wanted = _variables(program, inputs, "inputs")
    given = target_gradients if isinstance(target_gradients, (list, tuple)) else [target_gradients]
    if len(given) != len(listed) and target_gradients is not None:
        raise ValueError(f"[gradients] there are {len(given)} target_gradients for {len(listed)} targets.")
    cotangents = list(given) + [None] * (len(listed) - len(given))
    for target, cotangent in zip(listed, cotangents):
        if cotangent is not None and list(cotangent.shape) != list(target.shape):
            raise ValueError(
                f"[gradients] a target of shape {target.shape} cannot start with a gradient of shape {cotangent.shape}."
            )
    with oar.enable_grad():
        blocked = _variables(program, no_grad_set, "no_grad_set")
        return _differentiate(program, listed, wanted, cotangents, blocked, again=True)
