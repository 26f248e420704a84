"""The tape, run backwards."""

from __future__ import annotations

from collections.abc import Sequence

from oar import _C
from oar._C import Tensor


def _listed(value):
    return value if value is None or isinstance(value, (list, tuple)) else [value]


def backward(tensors, grad_tensors=None, retain_graph: bool = False) -> None:
    """Adds the gradients of the tensors into the leaves they came from."""
    _C.backward(_listed(tensors), _listed(grad_tensors), retain_graph)


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool = False,
         no_grad_vars: Tensor | Sequence[Tensor] | None = None, name: str | None = None) -> list[Tensor | None]:
    """Gradients of the outputs with respect to the inputs; ``.grad`` of the leaves stays as it is.

    With ``create_graph`` the result can be differentiated again, to any order.
    """
    if not only_inputs:
        raise NotImplementedError("[grad] only_inputs=False is not offered; use backward() to fill the leaves.")
    retain = create_graph if retain_graph is None else retain_graph
    blocked = list(no_grad_vars) if isinstance(no_grad_vars, (set, frozenset)) else _listed(no_grad_vars)
    return _C.grad(_listed(outputs), _listed(inputs), _listed(grad_outputs), retain, create_graph, allow_unused, blocked)
