"""Gradients in programs, under another of Paddle's inner paths."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.static.backward import append_backward, gradients

__all__ = ["append_backward", "calc_gradient", "grad", "gradients"]

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
