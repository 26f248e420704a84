"""Jacobians and Hessians of recorded tensors."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar.autograd.backward import grad


def _rows(y: Tensor, x: Tensor, create_graph: bool) -> Tensor:
    flat = ops.reshape(y, [-1])
    rows = []
    for i in range(flat.shape[0]):
        (row,) = grad([flat[i]], [x], retain_graph=True, create_graph=create_graph, allow_unused=True)
        rows.append(ops.zeros_like(x) if row is None else row)
    return ops.reshape(ops.stack(rows, 0), [flat.shape[0], x.size])


def jacobian(ys, xs, batch_axis: int | None = None):
    """dy/dx for recorded ys and xs: [size of y, size of x], or [batch, y, x] with ``batch_axis=0``.

    Args:
        ys: the recorded results.
        xs: the inputs.
        batch_axis: 0 where the first axis of both is a batch, else None.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.jacobian(x * x, x)[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[2., 0.],
                [0., 4.]])
    """
    if isinstance(ys, (list, tuple)):
        return tuple(jacobian(y, xs, batch_axis) for y in ys)
    if isinstance(xs, (list, tuple)):
        return tuple(jacobian(ys, x, batch_axis) for x in xs)
    if batch_axis is None:
        return _rows(ys, xs, True)
    if batch_axis != 0:
        raise ValueError(f"[jacobian] batch_axis must be None or 0, not {batch_axis}.")
    batch = ys.shape[0]
    columns = ops.reshape(ys, [batch, -1])
    rows = []
    for i in range(columns.shape[1]):
        (row,) = grad([ops.sum(columns[:, i])], [xs], retain_graph=True, create_graph=True, allow_unused=True)
        rows.append(ops.reshape(ops.zeros_like(xs) if row is None else row, [batch, -1]))
    return ops.stack(rows, 1)


def hessian(ys, xs, batch_axis: int | None = None):
    """Second derivatives of a scalar ys (or of one scalar per slice of the batch).

    Args:
        ys: the recorded results.
        xs: the inputs.
        batch_axis: 0 where the first axis of both is a batch, else None.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.hessian((x ** 3).sum(), x)[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[6. , 0. ],
                [0. , 12.]])
    """
    if isinstance(xs, (list, tuple)):
        first = grad([ys if batch_axis is None else ops.sum(ys)], list(xs), create_graph=True)
        return tuple(tuple(jacobian(g, x, batch_axis) for x in xs) for g in first)
    (single,) = grad([ys if batch_axis is None else ops.sum(ys)], [xs], create_graph=True)
    return jacobian(single, xs, batch_axis)
