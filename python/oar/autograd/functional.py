"""Jacobians and Hessians of recorded tensors; the rows that are read are computed together."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import oar
from oar._C import Tensor, ops
from oar.autograd.backward import grad

# Rows that are computed together: more need more memory and are not faster.
ROWS_AT_ONCE = 128


def rows_of(columns: Tensor, xs: list[Tensor], chosen: Sequence[int], is_batched: bool) -> list[Tensor]:
    """The derivatives of some columns of [columns], or [batch, columns], by each of xs: [chosen, *shape of the x] for each."""
    def back(cotangent: Tensor) -> list[Tensor]:
        found = grad([columns], xs, [cotangent], retain_graph=True, create_graph=True, allow_unused=True)
        return [ops.zeros_like(x) if g is None else g for g, x in zip(found, xs)]

    parts = []
    for first in range(0, len(chosen), ROWS_AT_ONCE):
        units = ops.one_hot(oar.to_tensor(list(chosen[first : first + ROWS_AT_ONCE])), columns.shape[-1]).astype(columns.dtype)
        if is_batched:
            units = ops.expand(ops.unsqueeze(units, 1), [units.shape[0], *columns.shape])
        found = oar.func.vmap(back)(units)
        parts.append([found] if isinstance(found, Tensor) else list(found))
    return parts[0] if len(parts) == 1 else [ops.concat(list(same), 0) for same in zip(*parts)]


class Jacobian:
    """The derivatives of a recorded ``ys`` by ``xs``: [size of ys, size of xs], or [batch, ys, xs] with ``is_batched``.

    Rows are computed when they are first read, those of a slice together, and cached. Index it like a tensor: ``J[:]`` is the whole matrix. A scalar has no
    axis: its Jacobian is a vector. Other attributes and operators are those of the whole matrix.

    Args:
        ys: the recorded result, with at most one axis besides the batch.
        xs: the input, with at most one axis besides the batch.
        is_batched: whether axis 0 of both is a batch.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
        >>> J = oar.autograd.jacobian(x * x, x)
        >>> J[1]
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=False,
               [0., 4., 0.])
        >>> J.shape
        [3, 3]
    """

    def __init__(self, ys: Tensor, xs: Tensor, is_batched: bool = False) -> None:
        low, high = (1, 2) if is_batched else (0, 1)
        for name, tensor in (("xs", xs), ("ys", ys)):
            if not low <= tensor.ndim <= high:
                raise ValueError(f"{name}.ndim should be {low} or {high} when is_batched={is_batched} but got {tensor.ndim}.")
        if is_batched and ys.shape[0] != xs.shape[0]:
            raise ValueError(f"ys has a batch of {ys.shape[0]}, but xs one of {xs.shape[0]}.")
        self._ys, self._xs, self._batched = ys, xs, is_batched
        self._columns = ops.reshape(ys, [ys.shape[0], -1] if is_batched else [-1])
        self._rows: dict[int, Tensor] = {}
        batch = [ys.shape[0]] if is_batched else []
        self._own_axes = (ys.ndim > len(batch), xs.ndim > len(batch))
        self._full = [*batch, self._columns.shape[-1], xs.shape[-1] if self._own_axes[1] else 1]
        self.shape = [*batch, *(size for size, own in zip(self._full[len(batch):], self._own_axes) if own)]

    def _block(self, chosen: list[int]) -> Tensor:
        """Rows [chosen, x], or [batch, chosen, x]. They are cached."""
        missing = [i for i in chosen if i not in self._rows]
        if missing:
            (block,) = rows_of(self._columns, [self._xs], missing, self._batched)
            block = ops.reshape(block, [len(missing), *self._full[:-2], -1])
            if block.stop_gradient:  # ys does not depend on xs
                block.stop_gradient = self._xs.stop_gradient
            self._rows.update(zip(missing, ops.unbind(block, 0)))
            if len(missing) == len(chosen):
                return ops.transpose(block, [1, 0, 2]) if self._batched else block
        return ops.stack([self._rows[i] for i in chosen], 1 if self._batched else 0)

    def __getitem__(self, indexes) -> Tensor:
        given = list(indexes) if isinstance(indexes, tuple) else [indexes]
        if not self.shape:
            raise IndexError("0-D tensor can not be indexed.")
        if any(index is Ellipsis for index in given):
            raise IndexError("Ellipsis index currently is not supported.")
        if len(given) > len(self.shape):
            raise IndexError(f"too many indices: {len(given)} for a Jacobian of shape {self.shape}.")
        given += [slice(None)] * (len(self.shape) - len(given))
        # The row's index decides what is computed; a missing axis is one of size 1 that is dropped.
        batch = [given.pop(0)] if self._batched else []
        rows = given.pop(0) if self._own_axes[0] else 0
        columns = given.pop(0) if self._own_axes[1] else 0
        count = self._full[-2]
        if isinstance(rows, slice):
            chosen = list(range(*rows.indices(count)))
            if not chosen:
                raise IndexError(f"the slice {rows} selects no row of {count}.")
            return self._block(chosen)[tuple([*batch, slice(None), columns])]
        i = operator.index(rows)
        if not -count <= i < count:
            raise IndexError(f"row {i} is out of range for a Jacobian of {count} rows.")
        return self._block([i % count])[tuple([*(batch or [slice(None)] * self._batched), 0, columns])]

    def _evaluate_all(self) -> Tensor:
        return self[:] if self.shape else ops.reshape(self._block([0]), [])

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._evaluate_all(), name)


def _attach_operators() -> None:
    def attached(name: str):
        def method(self, other):
            other = other._evaluate_all() if isinstance(other, Jacobian) else other
            return getattr(operator, name)(self._evaluate_all(), other)

        return method

    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "matmul", "eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Jacobian, f"__{name}__", attached(name))
    Jacobian.__hash__ = object.__hash__  # type: ignore[method-assign]


_attach_operators()


class Hessian(Jacobian):
    """The second derivatives of a scalar, computed when they are read. ``oar.autograd.hessian`` returns one.

    Args:
        ys: the recorded gradient.
        xs: the input.
        is_batched: whether axis 0 of both is a batch.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.hessian((x ** 3).sum(), x)[0]
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [6., 0.])
    """


def _is_batched(batch_axis: int | None) -> bool:
    if batch_axis is not None and not isinstance(batch_axis, int):
        raise ValueError(f"batch_axis should be None or int, but got {type(batch_axis)}.")
    if batch_axis not in (None, 0):
        raise ValueError(f"Only support batch_axis=0 yet, but got {batch_axis}. Move the batch to axis 0.")
    return batch_axis is not None


def jacobian(ys, xs, batch_axis: int | None = None):
    """dy/dx for recorded ys and xs: [size of y, size of x], or [batch, y, x] with ``batch_axis=0``.

    The rows are computed when the result is indexed.

    Args:
        ys: the recorded results, with at most one axis besides the batch.
        xs: the inputs, with at most one axis besides the batch.
        batch_axis: 0 where the first axis of both is a batch, else None.

    Returns:
        a Jacobian; a tuple of them if ``ys`` or ``xs`` is a sequence, of tuples if both are.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.jacobian(x * x, x)[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[2., 0.],
                [0., 4.]])
    """
    batched = _is_batched(batch_axis)
    if isinstance(ys, Sequence):
        return tuple(jacobian(y, xs, batch_axis) for y in ys)
    if isinstance(xs, Sequence):
        return tuple(Jacobian(ys, x, batched) for x in xs)
    return Jacobian(ys, xs, batched)


def hessian(ys, xs, batch_axis: int | None = None):
    """Second derivatives of a scalar ys (or of one scalar per slice of the batch).

    The rows are computed when the result is indexed.

    Args:
        ys: the recorded scalar, or one per slice of the batch.
        xs: the inputs, with at most one axis besides the batch.
        batch_axis: 0 where the first axis of both is a batch, else None.

    Returns:
        a Hessian; for several ``xs`` a tuple of tuples of them.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> oar.autograd.hessian((x ** 3).sum(), x)[:]
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=False,
               [[6. , 0. ],
                [0. , 12.]])
    """
    batched = _is_batched(batch_axis)
    values = ys.size // ys.shape[0] if batched else ys.size
    if values > 1:
        raise ValueError(f"Only support ys.numel()==1{' per slice of the batch' * batched}, but ys has shape {list(ys.shape)}.")
    several = isinstance(xs, Sequence)
    inputs = list(xs) if several else [xs]
    gradients = grad([ys], inputs, create_graph=True, allow_unused=True)
    first = [ops.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs)]
    matrix = tuple(tuple(Hessian(g, x, batched) for x in inputs) for g in first)
    return matrix if several else matrix[0][0]
