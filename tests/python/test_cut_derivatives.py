"""Where a function cuts its derivative off: detach, no_grad and PyLayer, under jvp, vmap and in captured functions."""

import numpy as np
import pytest

import oar
from oar.autograd import PyLayer


class Straight(PyLayer):
    """Rounds, and has the derivative of the identity."""

    @staticmethod
    def forward(ctx, x):
        return oar.round(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def tangent(function, *values):
    primals = [oar.to_tensor(v) for v in values]
    return oar.func.jvp(function, primals, [oar.ones_like(x) for x in primals])[1]


def under_no_grad(x):
    with oar.no_grad():
        y = x * x
    return x * y


CUTS = {
    "detach": (lambda x: x.detach() * x * x, lambda x: 2 * x * x, lambda x: 2 * x),
    "no_grad": (under_no_grad, lambda x: x * x, lambda x: 0 * x),
    "detached twice": (lambda x: (x.detach() * x).detach() * x, lambda x: x * x, lambda x: 0 * x),
    "detached result": (lambda x: x * oar.exp(x).detach() + x * x, lambda x: np.exp(x) + 2 * x, lambda x: 2 + 0 * x),
}


@pytest.mark.parametrize("name", CUTS)
def test_jvp_cuts_tangents(name):
    function, first, _ = CUTS[name]
    x = np.array([0.5, -1.5, 3.0], "float32")
    np.testing.assert_allclose(tangent(function, x).numpy(), first(x), rtol=1e-6)


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("captured", [False, True])
def test_first_and_second_derivatives(name, captured):
    function, first, second = CUTS[name]
    called = oar.jit.to_static(function) if captured else function
    x = oar.to_tensor(np.array([0.5, -1.5, 3.0], "float32"), stop_gradient=False)
    for _ in range(2):  # the second call runs what the first one captured
        (gradient,) = oar.grad(called(x).sum(), x, create_graph=True)
        np.testing.assert_allclose(gradient.numpy(), first(x.numpy()), rtol=1e-6)
        if gradient.stop_gradient:
            assert not second(x.numpy()).any()
            continue
        (again,) = oar.grad(gradient.sum(), x, allow_unused=True)
        again = np.zeros(3) if again is None else again.numpy()
        np.testing.assert_allclose(again, second(x.numpy()), rtol=1e-6, atol=1e-7)


def test_stop_gradient_inside_a_captured_function():
    @oar.jit.to_static
    def function(x):
        y = x * 3.0
        y.stop_gradient = True
        return x * x * y

    x = oar.to_tensor([2.0], stop_gradient=False)
    (gradient,) = oar.grad(function(x), x, create_graph=True)
    (second,) = oar.grad(gradient, x)
    assert gradient.item() == 2 * 2 * 6 and second.item() == 2 * 6


def test_captured_training_step_is_not_changed_by_marks():
    layer = oar.nn.Linear(3, 2)
    target = oar.ones([4, 2])

    def loss(x):
        out = layer(x)
        return ((out - target) ** 2).mean() + out.detach().abs().mean() * out.mean()

    x = oar.randn([4, 3])
    gradients = []
    for function in (loss, oar.jit.to_static(loss)):
        function(x).backward()
        gradients.append(layer.weight.grad.numpy())
        layer.clear_gradients()
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5, atol=1e-6)


def test_detach_inside_vmap_is_cut_for_a_gradient_outside():
    x = oar.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    y = oar.func.vmap(lambda a: a.detach() * a)(x)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), x.numpy())


def test_no_grad_outside_of_jvp_cuts_nothing_inside():
    with oar.no_grad():
        assert tangent(lambda a: a * a, np.float32([3.0])).item() == 6

        def inner(a):
            with oar.no_grad():
                b = a * 1.0
            with oar.enable_grad():
                return a * b

        assert tangent(inner, np.float32([3.0])).item() == 3
        assert tangent(lambda a: a * a, np.float32([3.0])).item() == 6


def test_no_grad_cuts_the_transforms_around_it_only():
    def outer(a):
        with oar.no_grad():
            inner = oar.func.jvp(lambda b: b * b * a, [oar.to_tensor([2.0])], [oar.to_tensor([1.0])])[1]
        return inner + a

    value, derivative = oar.func.jvp(outer, [oar.to_tensor([3.0])], [oar.ones([1])])
    assert value.item() == 2 * 2 * 3 + 3 and derivative.item() == 1


def test_jvp_of_grad_is_not_cut():
    value = tangent(lambda a: oar.func.grad(lambda b: (b ** 3).sum())(a), np.float32([2.0]))
    assert value.item() == pytest.approx(12)


def test_jvp_uses_the_derivative_of_a_pylayer():
    value, derivative = oar.func.jvp(Straight.apply, [oar.to_tensor([1.4])], [oar.to_tensor([5.0])])
    assert value.item() == 1 and derivative.item() == 5


def test_jvp_of_a_pylayer_with_several_operands():
    class Product(PyLayer):
        @staticmethod
        def forward(ctx, x, y, scale=2.0):
            ctx.save_for_backward(x, y)
            return x * y * scale, x + y

        @staticmethod
        def backward(ctx, a, b):
            x, y = ctx.saved_tensor()
            return a * y * 2 + b, a * x * 2 + b

    x, y = oar.to_tensor([3.0]), oar.to_tensor([5.0])
    one = oar.ones([1])
    values, derivatives = oar.func.jvp(lambda a, b: Product.apply(a, b), [x, y], [one, one * 2])
    assert [v.item() for v in values] == [30, 8]
    assert [d.item() for d in derivatives] == [2 * (5 + 3 * 2), 3]


INTEGERS = [
    lambda a: a + 1, lambda a: a * a, oar.abs, oar.cumsum, oar.sum, oar.max, oar.sort, oar.sign, oar.square,
    lambda a: oar.where(a > 1, a, -a), lambda a: oar.clip(a, 0, 1), lambda a: a // 2, lambda a: oar.concat([a, a]),
    lambda a: oar.exp(a), lambda a: oar.mean(a.astype("float32")), lambda a: a.reshape([-1]), lambda a: oar.prod(a),
]


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "uint8"])
@pytest.mark.parametrize("number", range(len(INTEGERS)))
def test_integers_have_no_tangent(number, dtype):
    function = INTEGERS[number]
    x = oar.to_tensor(np.array([[1, 0], [2, 3]]).astype(dtype))
    try:
        expected = function(x)
    except (TypeError, ValueError):
        pytest.skip("not for this dtype")
    expected = expected[0] if isinstance(expected, (list, tuple)) else expected
    value, derivative = oar.func.jvp(lambda a: (lambda y: y[0] if isinstance(y, (list, tuple)) else y)(function(a)),
                                     [x], [oar.ones_like(x)])
    np.testing.assert_array_equal(value.numpy(), expected.numpy())
    assert not derivative.numpy().any() and derivative.shape == expected.shape
