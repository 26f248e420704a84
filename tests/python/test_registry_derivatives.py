"""Derivatives of every op in float64 and complex128 against differences, forwards, backwards and mixed."""

import contextlib

import numpy as np

import oar
from registry.derivatives import Case, Kink, check_near, difference, gradient, inner, leaves, projected
from registry.records import SAMPLED, Trait, describe, each, fits
from registry.tally import Tally

DIFFERENTIABLE = [r for r in SAMPLED if not r.has(Trait.NO_GRAD)]  # no other op is left out, of any order


def dtypes_of(record):
    """An op of integers may have other operands that are floats."""
    return [d for d in ("float64", "complex128") if d in record.allowed()] or ["int64"]


def cases(record):
    for dtype in dtypes_of(record):
        for number, args in enumerate(record.samples(dtype)):
            rng = np.random.default_rng(17 + number)
            if not fits(record, dtype, number):
                continue
            case = Case(record, args, rng)
            if case.usable:
                yield case, f"[{dtype}] {describe(record, number, args)}"


def check_order(record, order, tolerance):
    """<grad F, d> against the difference of F along d, where F is a projected derivative of order - 1."""
    tally = Tally(record)
    for case, what in cases(record):
        with tally.sample(what), contextlib.suppress(Kink):
            projections = [case.directions() for _ in range(order - 1)]
            function = projected(case, order - 1, projections)
            xs = leaves(case.start)
            found = gradient(function, xs)
            along = case.directions()
            actual = inner(found, along)
            scale = sum(float(np.sum(np.abs(g.numpy()))) for g in found if g.size)
            assert all(g.shape == x.shape and g.dtype == x.dtype for g, x in zip(found, xs)), \
                f"{what}: gradients {[(g.dtype.name, g.shape) for g in found]}"
            wanted = difference(function, case, along)
            tally.add(check_near(actual, wanted, scale, tolerance, f"{what}: order {order}"))
    tally.close()


@each(DIFFERENTIABLE)
def test_first_order(record):
    check_order(record, 1, 1e-7)


@each(DIFFERENTIABLE)
def test_second_order(record):
    check_order(record, 2, 1e-6)


@each(DIFFERENTIABLE)
def test_third_order(record):
    check_order(record, 3, 1e-5)


@each(DIFFERENTIABLE)
def test_forward_mode(record):
    """jvp against differences; and the two ways to a Hessian-vector product against each other."""
    tally = Tally(record)
    for case, what in cases(record):
        with tally.sample(what), contextlib.suppress(Kink):
            check_forward(record, case, what, tally)
    tally.close()


def check_forward(record, case, what, tally):
    along = case.directions()
    value, slope = oar.func.jvp(case.value, case.start, along)
    wanted = difference(case.value, case, along)
    size = sum(float(np.sum(np.abs(w.numpy()))) for w in case.weights if w.size)
    tally.add(check_near(float(slope.item()), wanted, size, 1e-7, f"{what}: jvp"))
    check_near(float(value.item()), float(case.value(*case.start).item()), 0, 1e-12, f"{what}: value")

    if record.written is not None:  # a tangent may need what the op overwrites: an error, not a number
        return

    def slopes(*xs):
        return oar.func.jvp(case.value, list(xs), along)[1]

    def gradients(*xs):
        marked = [oar._C.ops.assign(x) for x in xs]
        for x in marked:
            x.stop_gradient = False
        return tuple(gradient(case.value, marked, create_graph=True))

    one = gradient(slopes, leaves(case.start))
    other = oar.func.jvp(gradients, case.start, along)[1]
    assert len(one) == len(other) == len(case.start), f"{what}: {len(one)} and {len(other)} gradients"
    for a, b in zip(one, other):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9,
                                   err_msg=f"{what}: grad of jvp against jvp of grad")
