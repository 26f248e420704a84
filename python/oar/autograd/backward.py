"""The tape, run backwards."""

from __future__ import annotations

from collections.abc import Sequence

from oar import _C
from oar._C import Tensor


def _listed(value):
    return value if value is None or isinstance(value, (list, tuple)) else [value]


def _check_tensors(what: str, values) -> None:
    """An AssertionError, which is what Paddle raises, where something else than a tensor is among them."""
    for value in values if values is not None else [None]:
        if not isinstance(value, Tensor):
            raise AssertionError(f"[grad] {what} should be a Tensor or a list of them, but received "
                                 f"{type(value).__name__}.")


def backward(tensors, grad_tensors=None, retain_graph: bool = False) -> None:
    """Adds the gradients of the tensors into the leaves they came from.

    Args:
        tensors: the tensors to start from.
        grad_tensors: their gradients; ones if None.
        retain_graph: whether the recorded calls are kept for another backward.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.backward([(x * x).sum(), (3 * x).sum()])
        >>> x.grad
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [5., 7.])
    """
    _C.backward(_listed(tensors), _listed(grad_tensors), retain_graph)


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool = False,
         no_grad_vars: Tensor | Sequence[Tensor] | None = None, name: str | None = None) -> list[Tensor | None]:
    """Gradients of the outputs with respect to the inputs; ``.grad`` of the leaves stays as it is.

    With ``create_graph`` the result can be differentiated again, to any order.

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
        >>> x = oar.to_tensor(3.0, stop_gradient=False)
        >>> (slope,) = oar.grad(x ** 3, x, create_graph=True)
        >>> (curvature,) = oar.grad(slope, x)
        >>> slope.item(), curvature.item()
        (27.0, 18.0)
    """
    if not only_inputs:
        raise NotImplementedError("[grad] only_inputs=False is not offered; use backward() to fill the leaves.")
    retain = create_graph if retain_graph is None else retain_graph
    blocked = list(no_grad_vars) if isinstance(no_grad_vars, (set, frozenset)) else _listed(no_grad_vars)
    outputs, inputs, cotangents = _listed(outputs), _listed(inputs), _listed(grad_outputs)
    _check_tensors("outputs", outputs)
    _check_tensors("inputs", inputs)
    _check_tensors("no_grad_vars", blocked or [])
    if cotangents and len(cotangents) != len(outputs):
        raise AssertionError(f"[grad] there are {len(outputs)} outputs but {len(cotangents)} grad_outputs.")
    made = _C.grad(outputs, inputs, cotangents, retain, create_graph, allow_unused, blocked)
    if create_graph:  # what does not depend on anything is differentiable too: its derivative is zero
        for gradient in made:
            if gradient is not None and gradient.stop_gradient and gradient.is_leaf:
                gradient.stop_gradient = False
    return made
