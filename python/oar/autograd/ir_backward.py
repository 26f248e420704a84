"""Gradients in programs, under another of Paddle's inner paths."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.static.backward import append_backward, gradients

__all__ = ["append_backward", "calc_gradient", "grad", "gradients"]

calc_gradient = gradients


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, no_grad_vars: Any = None) -> list[Tensor | None]:
    """Append the gradients of outputs with respect to inputs; see ``oar.static.gradients``."""
    return gradients(outputs, inputs, grad_outputs, no_grad_vars)
