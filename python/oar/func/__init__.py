"""Function transforms: jvp, vjp, vmap, grad, which nest in any order; and layers as functions of their parameters."""

from __future__ import annotations

import functools

from oar import _C
from oar._C import Tensor
from oar.autograd.backward import grad as _grad

__all__ = ["functional_call", "grad", "jvp", "vjp", "vmap"]


def _listed(value) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _marked(x: Tensor) -> Tensor:
    """A copy to differentiate by; recorded where x is, so that derivatives of the derivative reach the caller's x."""
    if not x.stop_gradient and _C.is_grad_enabled():
        return _C.ops.assign(x)
    leaf = _C.ops.assign(x)  # not detach(): tangents of outer transforms must continue
    leaf.stop_gradient = False
    return leaf


class _Shape:
    """Remembers whether a function returned one tensor or several."""

    def __init__(self, func):
        self.func, self.single = func, True

    def __call__(self, inputs):
        result = self.func(*inputs)
        self.single = isinstance(result, Tensor)
        return _listed(result)

    def restore(self, values):
        return values[0] if self.single else tuple(values)


def jvp(func, xs, v=None):
    """(func(xs), directional derivative along v); v defaults to ones.

    Args:
        func: the function.
        xs: the inputs.
        v: the direction or cotangent; ones if None.

    Examples:
        >>> import oar
        >>> y, tangent = oar.func.jvp(lambda x: x * x, oar.to_tensor([3.0]), oar.to_tensor([1.0]))
        >>> y.item(), tangent.item()
        (9.0, 6.0)
    """
    primals = _listed(xs)
    tangents = [_C.ops.ones_like(x) for x in primals] if v is None else _listed(v)
    call = _Shape(func)
    values, derivatives = _C.jvp(call, primals, tangents)
    return call.restore(values), call.restore(derivatives)


def _recording() -> int:
    """Switches recording on, but leaves what ``no_grad`` around this cuts for other transforms. Returns what it was."""
    before = _C.grad_state()
    return _C.set_grad_enabled(before | 1)


def vjp(func, xs, v=None):
    """(func(xs), gradient of xs for the cotangent v); v defaults to ones.

    Args:
        func: the function.
        xs: the inputs.
        v: the direction or cotangent; ones if None.

    Examples:
        >>> import oar
        >>> y, gradient = oar.func.vjp(lambda x: x * x, oar.to_tensor([3.0, 4.0]))
        >>> y, gradient
        (Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [9. , 16.]), Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [6., 8.]))
    """
    inputs = [_marked(x) for x in _listed(xs)]
    call = _Shape(func)
    before = _recording()
    try:
        outputs = call(inputs)
        cotangents = None if v is None else _listed(v)
        grads = _grad(outputs, inputs, cotangents, create_graph=True, allow_unused=True)
    finally:
        _C.set_grad_enabled(before)
    grads = [_C.ops.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]
    return call.restore(outputs), grads if isinstance(xs, (list, tuple)) else grads[0]


def grad(func, argnums=0):
    """The function whose value is the gradient of a scalar func in the given arguments.

    Args:
        func: the function.
        argnums: the positions of the arguments to differentiate by.

    Examples:
        >>> import oar
        >>> slope = oar.func.grad(lambda x: (x ** 3).sum())
        >>> slope(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [3. , 12.])
        >>> oar.func.grad(lambda x: slope(x).sum())(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [6. , 12.])
    """
    positions = [argnums] if isinstance(argnums, int) else list(argnums)

    def gradient(*args):
        args = list(args)
        for i in positions:
            args[i] = _marked(args[i])
        before = _recording()
        try:
            out = func(*args)
            if out.ndim and out.size != 1:
                raise ValueError(f"[grad] the function must give a scalar, not a tensor of shape {out.shape}. "
                                 "Sum its result, or use vjp.")
            found = _grad([out], [args[i] for i in positions], create_graph=True, allow_unused=True)
        finally:
            _C.set_grad_enabled(before)
        found = [_C.ops.zeros_like(args[i]) if g is None else g for i, g in zip(positions, found)]
        return found[0] if isinstance(argnums, int) else tuple(found)

    return functools.update_wrapper(gradient, func)


def vmap(func, in_axes=0, out_axes=0):
    """func over slices of its inputs, in one go. An axis of None leaves an input whole.

    Args:
        func: the function.
        in_axes: the axis of each input that is mapped; None for inputs that are used whole.
        out_axes: the axis of the results that the map puts its slices along.

    Examples:
        >>> import oar
        >>> oar.func.vmap(lambda row: row / row.sum())(oar.to_tensor([[1.0, 3.0], [2.0, 2.0]]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.25000000, 0.75000000],
                [0.50000000, 0.50000000]])
    """

    def batched(*args):
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ValueError(f"[vmap] in_axes has {len(axes)} entries for {len(args)} arguments.")
        call = _Shape(func)
        outs = list(out_axes) if isinstance(out_axes, (list, tuple)) else [out_axes]
        return call.restore(_C.vmap(call, list(args), axes, outs))

    return functools.update_wrapper(batched, func)


def functional_call(layer, values, *args, **kwargs):
    """Calls a layer with other tensors instead of its parameters and buffers, and leaves the layer as it is.

    So a layer is a function of its parameters, for ``jvp``, ``vmap``, Hessians and solvers. A parameter that several
    sublayers share is replaced in all of them.

    Args:
        layer: the layer.
        values: a dictionary of tensors, with names as in ``state_dict``; the layer's own tensors are used for the others.
        args: the inputs of the layer.
        kwargs: named inputs of the layer.

    Returns:
        what the layer returns.

    Examples:
        >>> import oar
        >>> layer = oar.nn.Linear(2, 1)
        >>> values = {'weight': oar.ones([2, 1]), 'bias': oar.zeros([1])}
        >>> oar.func.functional_call(layer, values, oar.to_tensor([[3.0, 4.0]])).item()
        7.0
    """
    sublayers = layer.sublayers(include_self=True)
    places = [named for one in sublayers for named in (one._parameters, one._buffers)]
    swapped = {}
    for name, value in values.items():
        *path, last = name.split(".")
        owner = layer
        for part in path:
            owner = owner._sub_layers.get(part) if owner is not None else None
        own = None if owner is None else owner._parameters.get(last, owner._buffers.get(last))
        if own is None:
            raise KeyError(f"[functional_call] values has the name {name!r}, but the layer has no such parameter or buffer. Its "
                           f"names are {', '.join(layer.state_dict())}.")
        if list(own.shape) != list(value.shape):
            raise ValueError(f"[functional_call] the value of {name!r} has shape {list(value.shape)}, but the layer's has "
                             f"shape {list(own.shape)}.")
        swapped[id(own)] = value
    kept = [(named, key, own) for named in places for key, own in named.items() if id(own) in swapped]
    try:
        for named, key, own in kept:
            named[key] = swapped[id(own)]
        return layer(*args, **kwargs)
    finally:
        for named, key, own in kept:
            named[key] = own
