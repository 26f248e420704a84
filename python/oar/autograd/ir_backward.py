"""Gradients in programs, under another of Paddle's inner paths."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.static.backward import append_backward, gradients

__all__ = ["append_backward", "calc_gradient", "calc_gradient_helper", "grad", "gradients"]

calc_gradient = gradients


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, no_grad_vars: Any = None) -> list[Tensor | None]:
    """Append the gradients of outputs with respect to inputs; see ``oar.static.gradients``.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors to differentiate by.
        grad_outputs: the gradients of the outputs; ones if None.
        retain_graph: whether the recorded calls are kept for another backward.
        create_graph: whether the gradients can be differentiated again.
        only_inputs: accepted for compatibility; must be True.
        allow_unused: whether an input that the outputs do not depend on gives None instead of an error.
        no_grad_vars: tensors through which no gradient passes.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [1])
        ...     x.stop_gradient = False
        ...     (slope,) = oar.autograd.ir_backward.grad([x * x], [x])
        ...
        >>> oar.static.Executor().run(main, feed={'x': [3.0]}, fetch_list=[slope])[0].tolist()
        [6.0]
        >>> oar.disable_static()
    """
    return gradients(outputs, inputs, grad_outputs, no_grad_vars)


def calc_gradient_helper(outputs: Any, inputs: Any, grad_outputs: Any = None, no_grad_set: Any = None) -> dict[Tensor, list[list[Tensor]]]:
    """Append the gradients of outputs with respect to inputs, by input; see ``oar.static.gradients``.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors to differentiate by.
        grad_outputs: the gradients of the outputs; ones if None.
        no_grad_set: tensors through which no gradient passes.

    Returns:
        a dict: for each input that has a gradient, ``[[gradient]]``.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [1])
        ...     x.stop_gradient = False
        ...     slopes = oar.autograd.ir_backward.calc_gradient_helper([x * x], [x])
        ...
        >>> oar.static.Executor().run(main, feed={'x': [3.0]}, fetch_list=[slopes[x][0][0]])[0].tolist()
        [6.0]
        >>> oar.disable_static()
    """
    listed = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    found = gradients(outputs, listed, grad_outputs, no_grad_set)
    return {variable: [[gradient]] for variable, gradient in zip(listed, found) if gradient is not None}
