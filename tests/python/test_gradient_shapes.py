"""Gradients from user code have the shape of their tensor, or are rejected with both shapes."""

import numpy as np
import pytest

import oar
from oar.autograd import PyLayer


def leaf(*shape):
    x = oar.ones(list(shape))
    x.stop_gradient = False
    return x


def doubling(given):
    class Doubling(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return given(grad)

    return Doubling


@pytest.mark.parametrize("given", [lambda g: g.sum(), lambda g: g[:1], lambda g: g.reshape([1, 3]),
                                   lambda g: oar.ones([3, 3])])
@pytest.mark.parametrize("of_leaf", [True, False])
def test_pylayer(given, of_leaf):
    x = leaf(3)
    operand = x if of_leaf else x + 1
    wrong = given(oar.ones([3])).shape
    with pytest.raises(ValueError, match=rf"Doubling.*{str(wrong)[1:-1]}.*\[3\]"):
        doubling(given).apply(operand).sum().backward()


def test_a_vector_of_one_number_is_taken_for_a_number():
    x = leaf()
    doubling(lambda g: g.reshape([1]) * 2).apply(x).backward()
    assert x.grad.shape == [] and x.grad.item() == 2


@pytest.mark.parametrize("of_leaf", [True, False])
def test_hooks(of_leaf):
    x = leaf(2, 3)
    y = x if of_leaf else x * 1
    y.register_hook(lambda g: g.sum(0))
    with pytest.raises(ValueError, match=r"hook.*\[3\].*\[2, 3\]"):
        (y * 2).sum().backward()


def test_vjp_of_a_users_op():
    op = oar.utils.register_op(
        "shape_test_double(Tensor x) -> Tensor", compute=lambda x: x * 2,
        infer=lambda x: [(x.shape, x.dtype)], vjp=lambda x, outputs, grads: [grads[0].sum()], saves="x")
    with pytest.raises(ValueError, match=r"shape_test_double.*\[\].*\[4\]"):
        op(leaf(4)).sum().backward()


def test_right_shapes_pass():
    x = leaf(2, 3)
    y = doubling(lambda g: g * 2).apply(x)
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 3), 20.0))
