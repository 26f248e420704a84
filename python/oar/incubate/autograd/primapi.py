"""Derivatives of what a static program computes."""

from __future__ import annotations

from oar._C import ops
from oar.autograd.backward import grad as _grad
from oar.incubate.autograd.utils import as_tensors


def _like(made, sample):
    """A single one for a single one."""
    return made if isinstance(sample, (list, tuple)) else made[0]


def grad(outputs, inputs, grad_outputs=None):
    """Gradients of outputs with respect to inputs.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors to differentiate by.
        grad_outputs: the gradients of the outputs; ones if None.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([3.0], stop_gradient=False)
        >>> oar.incubate.autograd.grad(x * x, x)
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False,
               [6.])
    """
    cotangents = None if grad_outputs is None else list(as_tensors(grad_outputs))
    made = _grad(list(as_tensors(outputs)), list(as_tensors(inputs)), cotangents, create_graph=True, allow_unused=True)
    return _like(made, inputs)


def forward_grad(outputs, inputs, grad_inputs=None):
    """Derivatives of outputs along ``grad_inputs`` (ones by default).

    A gradient is linear in its cotangent, so its own gradient by the cotangent is the derivative forwards.

    Args:
        outputs: the tensors to differentiate.
        inputs: the tensors to differentiate by.
        grad_inputs: the directions; ones if None.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     x = oar.static.data('x', [1])
        ...     tangent = oar.incubate.autograd.forward_grad(x * x, x)
        ...
        >>> oar.static.Executor().run(main, feed={'x': [3.0]}, fetch_list=[tangent])[0].tolist()
        [0.0]
        >>> oar.disable_static()
    """
    ys, xs = list(as_tensors(outputs)), list(as_tensors(inputs))
    directions = [ops.ones_like(x) for x in xs] if grad_inputs is None else list(as_tensors(grad_inputs))
    cotangents = [ops.zeros_like(y) for y in ys]
    for cotangent in cotangents:
        cotangent.stop_gradient = False
    backwards = _grad(ys, xs, cotangents, create_graph=True, allow_unused=True)
    pairs = [(g, d) for g, d in zip(backwards, directions) if g is not None]
    made = _grad([g for g, _ in pairs], cotangents, [d for _, d in pairs], create_graph=True, allow_unused=True)
    return _like([ops.zeros_like(y) if g is None else g for g, y in zip(made, ys)], outputs)
