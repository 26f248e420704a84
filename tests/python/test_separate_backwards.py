"""Results of one captured call, each with its own backward(): what eager mode allows is allowed, the rest is refused."""

import numpy as np
import pytest

import oar


def apart(x, w):
    return (x * x).sum(), (w * w * w).sum()


def apart_of_one(x, w):
    return (x * x).sum(), (x * x * x).sum() + w.sum()


def after_a_common_step(x, w):
    y = x * w
    return (y * 2).sum(), (y * 3).sum()


def chain(x, w):
    y = x + 1
    z = w + 1
    return (y * 2).sum(), (y * z).sum(), (z * 3).sum()


def outcome(function, order, **options):
    """What each backward() says, and the gradients at the end."""
    x, w = oar.arange(1.0, 4.0), oar.arange(2.0, 5.0)
    x.stop_gradient = w.stop_gradient = False
    results = function(x, w)
    said = []
    for k in order:
        try:
            results[k].backward(**options)
            said.append("done")
        except RuntimeError as error:
            said.append("freed" if "freed by an earlier backward" in str(error) else str(error))
    return said, [None if t.grad is None else t.grad.numpy() for t in (x, w)]


@pytest.mark.parametrize("function", [apart, apart_of_one, after_a_common_step])
@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 0), (0, 1, 0, 1)])
@pytest.mark.parametrize("keep", [False, True])
def test_two_results(function, order, keep):
    assert_same(function, order, retain_graph=keep)


@pytest.mark.parametrize("order", [(0, 2), (2, 0), (0, 1), (1, 0), (1, 2), (0, 2, 1), (0, 2, 2)])
def test_three_results(order):
    assert_same(chain, order)


def assert_same(function, order, **options):
    said, gradients = outcome(oar.jit.to_static(function), order, **options)
    expected, wanted = outcome(function, order, **options)
    assert said == expected
    if "freed" in said:  # eager mode has already passed on some gradients then
        return
    for got, want in zip(gradients, wanted):
        assert (got is None) == (want is None)
        if got is not None:
            np.testing.assert_array_equal(got, want)


def test_a_result_that_outlives_its_call():
    class Keeper:
        last = oar.zeros([3])

    def step(x):
        before, Keeper.last = Keeper.last, x.mean(0)
        return before + x

    captured = oar.jit.to_static(step)
    for factor in (1.0, 2.0, 3.0):
        x = oar.full([2, 3], factor)
        x.stop_gradient = False
        captured(x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.ones((2, 3), "float32"))


def test_a_result_that_is_an_input():
    captured = oar.jit.to_static(lambda x: (x, (x * x).sum()))
    x = oar.arange(1.0, 4.0)
    x.stop_gradient = False
    same, square = captured(x)
    square.backward()
    same.sum().backward()
    same.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(1.0, 4.0, dtype="float32") + 2)
