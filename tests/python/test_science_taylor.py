"""Taylor mode against nested derivatives and known series; ops of every kind; errors."""

import math

import mpmath
import numpy as np
import pytest

import oar
import oar.nn.functional as F
from oar.science import jet, taylor

X = oar.to_tensor([0.3, 0.7], dtype="float64")
FUNCTIONS = {
    "exp": oar.exp, "sin": oar.sin, "tanh": oar.tanh, "log": oar.log, "sqrt": oar.sqrt, "erf": oar.erf, "atan": oar.atan,
    "lgamma": oar.lgamma, "asin": oar.asin, "rsqrt": oar.rsqrt, "i0": oar.i0, "log1p": oar.log1p, "tan": oar.tan,
    "reciprocal": lambda x: 1 / x,
    "quotient": lambda x: (1 + x * x) / (2 + oar.sin(x)),
    "power": lambda x: x**2.5,
    "polynomial": lambda x: 3 * x**3 - x,
    "x^x": lambda x: x**x,
    "sigmoid": F.sigmoid, "silu": F.silu, "gelu": F.gelu, "softplus": F.softplus, "mish": F.mish, "selu": F.selu,
    "softmax": lambda x: F.softmax(x * oar.to_tensor([1.0, 2.0], dtype="float64")),
    "norm": lambda x: (x * x).sum().sqrt() * x,
    "maximum": lambda x: x.max() * x,
    "products": lambda x: oar.matmul(x.reshape([1, 2]) * x.reshape([2, 1]), x.reshape([2, 1]))[:, 0],
    "cumsum": lambda x: oar.sin(x).cumsum(),
    "logsumexp": lambda x: oar.logsumexp(x * x) + x,
    "atan2": lambda x: oar.atan2(x, x * x + 1),
    "prod": lambda x: oar.prod(oar.sin(x)) + x,
    "layer_norm": lambda x: F.layer_norm(x * x, [2]) * x,
    "where": lambda x: oar.where(x > 0.5, oar.sin(x), oar.cos(x)),
    "concat": lambda x: oar.concat([x[1:] ** 2, oar.exp(x[:1])]),
    "composed": lambda x: oar.sin(oar.exp(x)) * oar.tanh(x) / (1 + x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_nested_jvp(name):
    function = FUNCTIONS[name]
    found = taylor(function, X, 5)

    def along(g):
        return lambda x: oar.func.jvp(g, x, oar.ones_like(x))[1]

    nested = function
    for k in range(5):
        expected = nested(X)
        np.testing.assert_allclose(found[k].numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
        nested = along(nested)


@pytest.mark.parametrize("name, at", [("tanh", 0.4), ("sqrt", 0.9), ("loggamma", 1.7)])
def test_orders_up_to_twelve(name, at):
    ours = {"tanh": oar.tanh, "sqrt": oar.sqrt, "loggamma": oar.lgamma}[name]
    with mpmath.workdps(60):
        series = mpmath.taylor(getattr(mpmath, name), at, 12) if name != "loggamma" else []
        expected = [float(c * math.factorial(k)) for k, c in enumerate(series)]
        expected = expected or [float(mpmath.loggamma(at)), *(float(mpmath.psi(k, at)) for k in range(12))]
    found = taylor(ours, oar.to_tensor(at, dtype="float64"), 12)
    np.testing.assert_allclose([f.item() for f in found], expected, rtol=1e-8)


def test_networks_and_their_gradients():
    """The fourth derivative of a network, and its gradient by the weights, against nested reverse mode."""
    oar.seed(1)
    net = oar.nn.Sequential(oar.nn.Linear(2, 16), oar.nn.Tanh(), oar.nn.Linear(16, 1))
    net.to(dtype="float64")
    points = oar.randn([5, 2], dtype="float64")
    v = oar.zeros_like(points)
    v[:, 0] = 1.0
    fourth = taylor(net, points, 4, v)[4]
    fourth.square().sum().backward()
    gradients = [p.grad.numpy().copy() for p in net.parameters() if p.grad is not None]
    for p in net.parameters():
        p.clear_grad()
    leaf = points.clone()
    leaf.stop_gradient = False
    nested = net(leaf)
    for _ in range(4):
        (all_,) = oar.grad(nested.sum(), leaf, create_graph=True)
        nested = all_[:, :1]
    np.testing.assert_allclose(fourth.numpy(), nested.numpy(), rtol=1e-9)
    nested.square().sum().backward()
    for found, p in zip(gradients, [p for p in net.parameters() if p.grad is not None]):
        np.testing.assert_allclose(found, p.grad.numpy(), rtol=1e-7, atol=1e-10)


def test_complex_and_float32():
    z = oar.to_tensor(np.array([0.3 + 0.4j]))
    for k, found in enumerate(taylor(lambda z: oar.exp(2j * z), z, 4)):
        np.testing.assert_allclose(found.numpy(), (2j) ** k * np.exp(2j * z.numpy()), rtol=1e-12)
    assert all(d.dtype == oar.float32 for d in taylor(oar.sin, oar.ones([2]), 3))


def test_jet_of_a_curve():
    """cos(t^2) at t = 1: x(t) = t^2 has the derivatives 2 t, 2, 0, 0."""
    x = oar.to_tensor(1.0, dtype="float64")
    two, zero = 2 * oar.ones_like(x), oar.zeros_like(x)
    value, found = jet(oar.cos, [x], [[two, two, zero, zero]])
    with mpmath.workdps(40):
        expected = [float(mpmath.diff(lambda t: mpmath.cos(t * t), 1, k)) for k in range(5)]
    np.testing.assert_allclose([value.item(), *(f.item() for f in found)], expected, rtol=1e-12)


def test_several_inputs_and_results():
    x, y = oar.to_tensor(0.5, dtype="float64"), oar.to_tensor(2.0, dtype="float64")
    product, total = taylor(lambda a, b: (a * b, a + b), [x, y], 3, [oar.ones_like(x), 3 * oar.ones_like(y)])
    assert [p.item() for p in product] == [1.0, 3.5, 6.0, 0.0]
    assert [t.item() for t in total] == [2.5, 4.0, 0.0, 0.0]


def test_inside_other_transforms():
    x = oar.to_tensor([0.2, 0.9], dtype="float64")
    _, tangent = oar.func.jvp(lambda x: taylor(oar.sin, x, 2)[2], x)
    np.testing.assert_allclose(tangent.numpy(), -np.cos(x.numpy()), rtol=1e-12)
    rows = oar.func.vmap(lambda row: taylor(oar.exp, row, 3)[3])(oar.stack([x, 2 * x]))
    np.testing.assert_allclose(rows.numpy(), np.exp(np.stack([x.numpy(), 2 * x.numpy()])), rtol=1e-12)
    inner = taylor(lambda x: taylor(oar.sin, x, 1)[1], x, 2)[2]
    np.testing.assert_allclose(inner.numpy(), -np.cos(x.numpy()), rtol=1e-12)


@pytest.mark.parametrize("transformed", [
    lambda x, w: taylor(lambda x: oar.tanh(x @ w) * x, x, 4)[4], lambda x, w: oar.func.jvp(lambda x: oar.tanh(x @ w), x)[1]])
def test_captured_whole_with_gradients(transformed):
    def function(x, w):
        return (transformed(x, w) ** 2).sum()

    weight = oar.to_tensor([[0.3, 0.7], [0.1, -0.5]], dtype="float64", stop_gradient=False)
    captured = oar.jit.to_static(function)
    for scale in (1.0, 2.0):
        plain, whole = function(X * scale, weight), captured(X * scale, weight)
        assert whole.item() == pytest.approx(plain.item(), rel=1e-12)
        (expected,), (found,) = oar.grad(plain, weight), oar.grad(whole, weight)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)
    assert oar.jit.capture_counts(captured) == {"captures": 1, "whole": 2, "segments": 0, "eager": 0}


def test_what_is_constant_has_no_derivative():
    def function(x):
        with oar.no_grad():
            frozen = oar.sin(x)
        return x * frozen + oar.floor(x).detach() + x.detach()

    found = taylor(function, X, 2)
    np.testing.assert_allclose(found[1].numpy(), np.sin(X.numpy()), rtol=1e-12)
    assert found[2].tolist() == [0.0, 0.0]
    assert [d.tolist() for d in taylor(lambda x: oar.ones([1]), X, 2)] == [[1.0], [0.0], [0.0]]


def test_a_long_function_does_not_recurse():
    def function(x):
        for _ in range(3000):
            x = x + 0.001 * oar.sin(x)
        return x

    assert math.isfinite(taylor(function, oar.to_tensor(0.5, dtype="float64"), 3)[3].item())


def test_mistakes():
    with pytest.raises(ValueError, match="order must be an integer of at least 0"):
        taylor(oar.sin, X, -1)
    with pytest.raises(ValueError, match="1 inputs, but 2 directions"):
        taylor(oar.sin, X, 1, [X, X])
    with pytest.raises(ValueError, match="they must match"):
        taylor(oar.sin, X, 1, oar.ones([3], dtype="float64"))
    with pytest.raises(TypeError, match="has no derivatives"):
        taylor(lambda x: x, oar.to_tensor([1]), 1)
    with pytest.raises(ValueError, match="as many derivatives"):
        jet(lambda a, b: a, [X, X], [[X], [X, X]])
    with pytest.raises(NotImplementedError, match="without the underscore"):
        taylor(lambda x: (x * 2).add_(x), X, 1)

    class Own(oar.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(NotImplementedError, match="taylor cannot expand Own"):
        taylor(Own.apply, X, 2)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_squares_and_sums_with_constants_are_those_of_polynomials(order):
    rng = np.random.default_rng(order)
    row = rng.standard_normal(3)
    for missing in ([], [1], [order], list(range(2, order + 1))):  # coefficients that are zero
        x = rng.standard_normal((order + 1, 2, 3))
        x[missing] = 0.0
        square = np.stack([sum(x[i] * x[k - i] for i in range(k + 1)) for k in range(order + 1)])
        expected = [square.copy(), -x, x.astype(complex)]
        expected[0][0] += row
        expected[1][0] += 1.0
        expected[2][0] += 2j
        series = [oar.to_tensor(x[k] * math.factorial(k)) for k in range(1, order + 1)]
        functions = (lambda t: t * t + oar.to_tensor(row), lambda t: 1.0 - t, lambda t: t + oar.to_tensor(2j, dtype="complex128"))
        for function, wanted in zip(functions, expected):
            value, derivatives = jet(function, (oar.to_tensor(x[0]),), (series,))
            found = [value, *(d / math.factorial(k) for k, d in enumerate(derivatives, 1))]
            for k in range(order + 1):
                np.testing.assert_allclose(found[k].numpy(), wanted[k], atol=1e-12, err_msg=f"coefficient {k}")


def test_a_row_plus_a_constant_matrix_has_the_derivative_of_a_matrix():
    matrix = oar.ones([4, 3], dtype="float64")
    _, first = taylor(lambda x: x + matrix, oar.to_tensor([1.0, 2.0, 3.0], dtype="float64"), 1)
    np.testing.assert_array_equal(first.numpy(), np.ones((4, 3)))


def test_expansions_of_one_function_share_their_values_in_a_program():
    x, t = oar.rand([700, 1], dtype="float64"), oar.rand([700, 1], dtype="float64")
    weight, bias = oar.rand([2, 5], dtype="float64"), oar.rand([5], dtype="float64")

    def net(x, t):
        return oar.tanh(oar.concat([x, 2 * t - 1], axis=1) @ weight + bias) ** 2 * (1 - x)

    @oar.jit.to_static
    def both(x, t):
        return taylor(lambda x: net(x, t), x, 2)[2] + taylor(lambda t: net(x, t), t, 1)[1]

    found = both(x, t)
    text = str(both.main_program)
    assert text.count("= tanh(") == 1
    assert not any("-0.0" in line for line in text.splitlines() if "= add(" in line)
    a, b, w = x.numpy(), t.numpy(), weight.numpy()
    y = np.tanh(a * w[0] + (2 * b - 1) * w[1] + bias.numpy())
    slope, bend = 2 * y * (1 - y**2), 2 * (1 - y**2) * (1 - 3 * y**2)
    expected = bend * w[0] ** 2 * (1 - a) - 2 * slope * w[0] + slope * 2 * w[1] * (1 - a)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_neutral_zeros_keep_their_sign_in_programs():
    x = oar.to_tensor([-0.0, 0.0, 1.5, -math.inf])
    for function in (lambda x: x + (-0.0), lambda x: x + 0.0, lambda x: x - 0.0, lambda x: x - (-0.0), lambda x: -0.0 + x):
        plain, captured = function(x).numpy(), oar.jit.to_static(lambda x: function(x) * 2.0)(x).numpy()  # noqa: B023
        np.testing.assert_array_equal(captured, plain * 2)
        np.testing.assert_array_equal(np.signbit(captured), np.signbit(plain))
