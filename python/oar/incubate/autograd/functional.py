"""Derivatives of functions: along a direction, and as matrices that are computed when they are read."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.autograd.backward import grad
from oar.autograd.functional import rows_of
from oar.func import jvp as _jvp
from oar.func import vjp as _vjp
from oar.incubate.autograd.utils import as_tensors


def _check_direction(v, wanted) -> None:
    for given, like in zip(as_tensors(v), as_tensors(wanted)):
        if list(given.shape) != list(like.shape):
            raise RuntimeError(f"v has the shape {list(given.shape)}, but belongs to a tensor of shape "
                               f"{list(like.shape)}.")


def jvp(func, xs, v=None):
    """(func(xs), its derivative along v); v defaults to ones.

    Args:
        func: the function.
        xs: the inputs.
        v: the direction or cotangent; ones if None.

    Examples:
        >>> import oar
        >>> y, tangent = oar.incubate.autograd.jvp(lambda x: x * x, oar.to_tensor([3.0]))
        >>> tangent
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [6.])
    """
    if v is not None:
        _check_direction(v, xs)
    return _jvp(func, xs, v)


def vjp(func, xs, v=None):
    """(func(xs), the gradient of xs for the cotangent v); v defaults to ones.

    Args:
        func: the function.
        xs: the inputs.
        v: the direction or cotangent; ones if None.

    Examples:
        >>> import oar
        >>> y, gradient = oar.incubate.autograd.vjp(lambda x: x * x, oar.to_tensor([3.0]))
        >>> gradient
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False,
               [6.])
    """

    def checked(*inputs):
        outputs = func(*inputs)
        if v is not None:
            _check_direction(v, outputs)
        return outputs

    return _vjp(checked, xs, v)


def _recorded(x: Tensor) -> Tensor:
    """x as something to differentiate by, still connected to what the caller's x comes from."""
    if not x.stop_gradient:
        return x
    leaf = ops.assign(x)  # not detach(): tangents of outer transforms must continue
    leaf.stop_gradient = False
    return leaf


def _flat(tensors, batched: bool) -> Tensor:
    """All of them as one line, or one line for each member of the batch."""
    shape = [0, -1] if batched else [-1]
    parts = [ops.reshape(t, [t.shape[0], -1] if batched else shape) for t in tensors]
    return parts[0] if len(parts) == 1 else ops.concat(parts, -1)


class Jacobian:
    """All first derivatives of ``func`` at ``xs``, computed when the matrix is first indexed.

    Tensors are flattened and put side by side: entry [i, j] is the derivative of output i by input j. With
    ``is_batched`` the first axis of all of them is a batch, and comes first: [b, i, j].

    Args:
        func: the function.
        xs: the inputs.
        is_batched: whether axis 0 is a batch.

    Examples:
        >>> import oar
        >>> oar.incubate.autograd.Jacobian(lambda x: x * x, oar.to_tensor([1.0, 2.0]))[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[2., 0.],
                [0., 4.]])
    """

    def __init__(self, func, xs, is_batched: bool = False) -> None:
        self._xs = [_recorded(x) for x in as_tensors(xs)]
        if is_batched and any(x.ndim < 2 for x in self._xs):
            raise ValueError("With is_batched, every input needs a batch axis and at least one more.")
        self._batched = is_batched
        self._ys = _flat(as_tensors(func(*self._xs)), is_batched)
        self._matrix: Tensor | None = None

    def _value(self) -> Tensor:
        if self._matrix is None:
            parts = rows_of(self._ys, self._xs, range(self._ys.shape[-1]), self._batched)
            batch = self._ys.shape[:-1]
            parts = [ops.reshape(part, [part.shape[0], *batch, -1]) for part in parts]
            whole = parts[0] if len(parts) == 1 else ops.concat(parts, -1)
            self._matrix = ops.transpose(whole, [1, 0, 2]) if self._batched else whole
        return self._matrix

    @property
    def shape(self):
        """The shape of the matrix."""
        inputs = sum((x.size // x.shape[0] if self._batched else x.size) for x in self._xs)
        return (*self._ys.shape, inputs)

    def __getitem__(self, index):
        return self._value()[index]


class Hessian:
    """All second derivatives of a ``func`` with one value (one for each member of a batch), computed when indexed.

    Args:
        func: the function.
        xs: the inputs.
        is_batched: whether axis 0 is a batch.

    Examples:
        >>> import oar
        >>> oar.incubate.autograd.Hessian(lambda x: (x ** 3).sum(), oar.to_tensor([1.0, 2.0]))[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[6. , 0. ],
                [0. , 12.]])
    """

    def __init__(self, func, xs, is_batched: bool = False) -> None:
        def gradient(*inputs):
            y = func(*inputs)
            if not isinstance(y, Tensor):
                raise RuntimeError("Hessian needs a function with one output.")
            values = y.size // y.shape[0] if is_batched and y.ndim else y.size
            if values != 1:
                raise RuntimeError(f"Hessian needs a function with one value{' per member of the batch' * is_batched}, "
                                   f"but its output has shape {list(y.shape)}.")
            grads = grad([ops.sum(y)], list(inputs), create_graph=True, allow_unused=True)
            return [ops.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]

        self._symmetric = Jacobian(gradient, xs, is_batched)

    @property
    def shape(self):
        """The shape of the matrix."""
        return self._symmetric.shape

    def __getitem__(self, index):
        return self._symmetric[index]
