"""Derivatives of an op as functions of its differentiable operands, and their differences."""

from __future__ import annotations

import numpy as np

import oar
from registry.records import Record, Trait, replaced, tensors_of


def is_differentiable(t: oar.Tensor) -> bool:
    return t.dtype.name in ("float64", "complex128") and not getattr(t, "fixed", False)


def direction(rng: np.random.Generator, like: oar.Tensor) -> oar.Tensor:
    """Random numbers of the shape and dtype of a tensor, and with its symmetry."""
    d = rng.standard_normal(like.shape)
    if like.dtype.name == "complex128":
        d = d + 1j * rng.standard_normal(like.shape)
    if getattr(like, "structure", "") == "hermitian matrix":
        d = (d + np.conj(np.swapaxes(d, -1, -2))) / 2
    return oar.to_tensor(np.asarray(d), dtype=like.dtype)


def inner(a: list, b: list) -> float:
    """The real inner product of two lists of tensors."""
    return sum(float(np.sum(np.real(np.conj(x.numpy()) * y.numpy()))) for x, y in zip(a, b))


def dot(a: list, b: list) -> oar.Tensor:
    """The same, recorded."""
    total = None
    for x, y in zip(a, b):
        part = oar._C.ops.sum(oar._C.ops.real(oar._C.ops.conj(x) * y) if x.dtype.name == "complex128" else x * y)
        total = part if total is None else total + part
    return total


class Case:
    """One sample of an op as a real function L(x) = <w, op(x)> of its differentiable operands."""

    def __init__(self, record: Record, args: list, rng: np.random.Generator):
        self.record, self.args, self.rng = record, args, rng
        self.all = tensors_of(args)
        self.places = [i for i, t in enumerate(self.all) if is_differentiable(t)]
        self.start = [self.all[i].detach() for i in self.places]
        self.weights: list = []
        outputs = self.outputs(self.start)
        self.weights = [direction(rng, t) for t in outputs]

    @property
    def usable(self) -> bool:
        return bool(self.places) and bool(self.weights) and any(t.size for t in self.start)

    def outputs(self, xs) -> list:
        """The differentiable results. An op that writes gets a copy to write to, one that draws always the same numbers."""
        tensors = list(self.all)
        for i, x in zip(self.places, xs):
            tensors[i] = x
        args = replaced(self.args, tensors)
        at = self.record.written
        if at is not None:
            args[at] = oar._C.ops.assign(args[at])
        if self.record.has(Trait.RANDOM):
            oar.seed(31)
        return [t for t in self.record.call(args) if is_differentiable(t)]

    def value(self, *xs) -> oar.Tensor:
        return dot(self.weights, self.outputs(xs))

    def moved(self, along, step: float) -> list:
        return [oar.to_tensor(x.numpy() + step * d.numpy(), dtype=x.dtype) for x, d in zip(self.start, along)]

    def directions(self) -> list:
        return [direction(self.rng, self.all[i]) for i in self.places]


def leaves(xs) -> list:
    found = []
    for x in xs:
        x = oar.to_tensor(x.numpy(), dtype=x.dtype)
        x.stop_gradient = False
        found.append(x)
    return found


def gradient(function, xs, create_graph=False) -> list:
    """The gradient of a scalar function; zeros where it does not depend on an operand."""
    value = function(*xs)
    if value is None or value.stop_gradient:
        return [oar._C.ops.zeros_like(x) for x in xs]
    found = oar.grad(value, xs, create_graph=create_graph, allow_unused=True)
    return [oar._C.ops.zeros_like(x) if g is None else g for g, x in zip(found, xs)]


def projected(case: Case, order: int, projections):
    """The order-th derivative of the case's value, all but the last taken along fixed projections."""
    if order == 0:
        return case.value

    lower = projected(case, order - 1, projections)

    def function(*xs):
        return dot(projections[order - 1], gradient(lower, list(xs), create_graph=True))
    return function


class Kink(Exception):
    """The function has no derivative at the sample, such as |x| at 0."""


def difference(function, case: Case, along, step=1e-4) -> float:
    """The central difference of a scalar function, by two step sizes (the error is of order four)."""
    at = {n: float(function(*leaves(case.moved(along, n * step))).item()) for n in (-2, -1, 0, 1, 2)}
    # Of a smooth function f(h) - 2 f(0) + f(-h) shrinks with the square of h; at a kink with h or not at all.
    bend, wider = (abs(at[n] - 2 * at[0] + at[-n]) for n in (1, 2))
    if bend > 1e-6 * step ** 0.5 * (1 + abs(at[0])) and bend > 0.35 * wider:
        raise Kink
    narrow, broad = ((at[n] - at[-n]) / (2 * n * step) for n in (1, 2))
    if abs(narrow - broad) > 1e-2 * (1 + abs(narrow)):  # a jump
        raise Kink
    return (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * step)


def check_near(actual: float, wanted: float, scale: float, tolerance: float, what: str) -> int:
    """Gives 1 for a comparison, 0 where neither has a value."""
    if np.isnan(actual) and np.isnan(wanted):
        return 0
    assert abs(actual - wanted) <= tolerance * (1 + scale + abs(wanted)), \
        f"{what}: {actual!r}, by differences {wanted!r} (numbers of size {scale:.3g})"
    return 1
