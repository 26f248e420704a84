"""jvp, vjp, vmap and grad: alone, and nested in every order, against formulas."""

import itertools

import numpy as np
import pytest

import oar
from oar.func import grad, jvp, vjp, vmap

X = np.array([0.3, -0.7, 1.1])


def tensor(values):
    return oar.to_tensor(np.asarray(values), dtype="float64")


# One-dimensional functions with their derivatives of order 0, 1, 2, 3.
FUNCTIONS = {
    "sin": (lambda x: oar.sin(x), [np.sin, np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v)]),
    "cube": (lambda x: x * x * x, [lambda v: v ** 3, lambda v: 3 * v ** 2, lambda v: 6 * v, lambda v: 6 + 0 * v]),
    "exp": (lambda x: oar.exp(x * 2.0), [lambda v, k=k: 2.0 ** k * np.exp(2 * v) for k in range(4)]),
    "quotient": (lambda x: 1.0 / (x + 3.0), [lambda v: 1 / (v + 3), lambda v: -(v + 3.0) ** -2,
                                            lambda v: 2 * (v + 3.0) ** -3, lambda v: -6 * (v + 3.0) ** -4]),
    "tanh": (oar.tanh, [np.tanh, lambda v: 1 - np.tanh(v) ** 2,
                        lambda v: -2 * np.tanh(v) * (1 - np.tanh(v) ** 2),
                        lambda v: (1 - np.tanh(v) ** 2) * (6 * np.tanh(v) ** 2 - 2)]),
}


# Each way of differentiating takes a function of a 0-d tensor to its derivative.
WAYS = {
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, x, oar.ones_like(x))[1],
    "vjp": lambda f: lambda x: vjp(f, x, oar.ones_like(x))[1],
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("ways", [w for n in (1, 2, 3) for w in itertools.product(WAYS, repeat=n)], ids="-".join)
def test_nested_derivatives(function, ways):
    f, derivatives = FUNCTIONS[function]
    for way in ways:
        f = WAYS[way](f)
    for v in X:
        np.testing.assert_allclose(f(tensor(v)).numpy(), derivatives[len(ways)](v), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("ways", [w for n in (1, 2) for w in itertools.product(WAYS, repeat=n)], ids="-".join)
def test_vmap_of_derivatives(function, ways):
    f, derivatives = FUNCTIONS[function]
    for way in ways:
        f = WAYS[way](f)
    np.testing.assert_allclose(vmap(f)(tensor(X)).numpy(), derivatives[len(ways)](X), rtol=1e-9, atol=1e-12)
    both = vmap(vmap(f))(tensor([X, X + 0.1]))
    np.testing.assert_allclose(both.numpy(), derivatives[len(ways)](np.array([X, X + 0.1])), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("inner", WAYS)
@pytest.mark.parametrize("outer", WAYS)
def test_derivatives_of_vmap(function, inner, outer):
    """vmap in the middle: a derivative of the mean of batched derivatives."""
    f, derivatives = FUNCTIONS[function]
    batched = vmap(WAYS[inner](f))

    def total(shift):
        return batched(tensor(X) + shift).sum()
    np.testing.assert_allclose(WAYS[outer](total)(tensor(0.2)).numpy(), derivatives[2](X + 0.2).sum(), rtol=1e-9)


def test_jacobian_of_a_matrix_product():
    a = np.random.default_rng(0).standard_normal((4, 3))
    def f(x):
        return oar.matmul(tensor(a), x)
    columns = vmap(lambda v: jvp(f, tensor(X), v)[1])(tensor(np.eye(3)))
    rows = vmap(lambda v: vjp(f, tensor(X), v)[1])(tensor(np.eye(4)))
    np.testing.assert_allclose(columns.numpy().T, a, rtol=1e-12)
    np.testing.assert_allclose(rows.numpy(), a, rtol=1e-12)


def test_per_sample_gradients():
    rng = np.random.default_rng(1)
    w, xs, ys = rng.standard_normal(3), rng.standard_normal((5, 3)), rng.standard_normal(5)

    def loss(w, x, y):
        return ((w * x).sum() - y) ** 2.0
    found = vmap(grad(loss), in_axes=(None, 0, 0))(tensor(w), tensor(xs), tensor(ys))
    np.testing.assert_allclose(found.numpy(), 2 * (xs @ w - ys)[:, None] * xs, rtol=1e-10)


def test_hessian_two_ways():
    rng = np.random.default_rng(2)
    m = rng.standard_normal((3, 3))
    m = m + m.T

    def f(x):
        return 0.5 * (x * oar.matmul(tensor(m), x)).sum()
    forward_over_reverse = vmap(lambda v: jvp(grad(f), tensor(X), v)[1])(tensor(np.eye(3)))
    np.testing.assert_allclose(forward_over_reverse.numpy(), m, rtol=1e-10)
    reverse_over_reverse = vmap(lambda v: vjp(grad(f), tensor(X), v)[1])(tensor(np.eye(3)))
    np.testing.assert_allclose(reverse_over_reverse.numpy(), m, rtol=1e-10)


def test_several_arguments_and_results():
    def f(a, b):
        return a * b, a + b
    values, slopes = jvp(f, [tensor(2.0), tensor(3.0)], [tensor(1.0), tensor(10.0)])
    assert [v.item() for v in values] == [6, 5] and [s.item() for s in slopes] == [23, 11]
    values, grads = vjp(f, [tensor(2.0), tensor(3.0)], [tensor(1.0), tensor(10.0)])
    assert [g.item() for g in grads] == [13, 12]
    both = grad(lambda a, b: a * a * b, argnums=(0, 1))(tensor(2.0), tensor(3.0))
    assert [g.item() for g in both] == [12, 4]


def test_axes():
    x = tensor(np.arange(12.0).reshape(3, 4))
    out = vmap(lambda r: r * 2.0, in_axes=1, out_axes=1)(x)
    np.testing.assert_allclose(out.numpy(), x.numpy() * 2)
    out = vmap(lambda r: r.sum(), in_axes=1)(x)
    np.testing.assert_allclose(out.numpy(), x.numpy().sum(0))
    out = vmap(lambda a, b: a + b, in_axes=(0, None))(x, tensor(np.arange(4.0)))
    np.testing.assert_allclose(out.numpy(), x.numpy() + np.arange(4.0))
    out = vmap(lambda r: r, out_axes=-1)(x)
    np.testing.assert_allclose(out.numpy(), x.numpy().T)


def test_a_result_that_does_not_depend():
    out = vmap(lambda r: tensor(1.0))(tensor(np.zeros((3, 2))))
    np.testing.assert_allclose(out.numpy(), np.ones(3))
    value, slope = jvp(lambda x: tensor(2.0), tensor(1.0), tensor(1.0))
    assert value.item() == 2 and slope.item() == 0
    assert grad(lambda x: tensor(2.0) * 1.0)(tensor(1.0)).item() == 0


def test_tensors_from_outside():
    scale = tensor(2.0)
    scale.stop_gradient = False
    out = vmap(lambda r: (r * scale).sum())(tensor(np.ones((3, 2))))
    out.sum().backward()
    assert scale.grad.item() == 6
    # A perturbation does not leak into an inner derivative that looks the same.
    d = jvp(lambda x: x * jvp(lambda y: x + y, tensor(1.0), tensor(1.0))[1], tensor(3.0), tensor(1.0))[1]
    assert d.item() == 1


@pytest.mark.parametrize("bad, error", [
    (lambda: vmap(lambda x: x)(tensor(1.0)), (ValueError, IndexError)),
    (lambda: vmap(lambda x, y: x + y)(tensor([1.0, 2.0]), tensor([1.0, 2.0, 3.0])), ValueError),
    (lambda: vmap(lambda x: x, in_axes=(0, 0))(tensor([1.0])), ValueError),
    (lambda: vmap(lambda x: x, in_axes=5)(tensor([1.0])), (ValueError, IndexError)),
    (lambda: jvp(lambda x: x, tensor([1.0, 2.0]), tensor([1.0])), ValueError),
    (lambda: grad(lambda x: x)(tensor([1.0, 2.0])), (ValueError, RuntimeError)),
])
def test_errors(bad, error):
    with pytest.raises(error):
        bad()
    np.testing.assert_allclose(vmap(lambda x: x + 1.0)(tensor([1.0])).numpy(), [2])  # nothing is left over


def test_an_exception_inside_leaves_no_level_behind():
    def broken(x):
        raise KeyError("mine")
    for way in (lambda: vmap(broken)(tensor([1.0])), lambda: jvp(broken, tensor(1.0), tensor(1.0)),
                lambda: grad(broken)(tensor(1.0))):
        with pytest.raises(KeyError, match="mine"):
            way()
    x = tensor([1.0, 2.0])
    np.testing.assert_allclose((x * 2.0).numpy(), [2, 4])
    assert x.numpy().shape == (2,)


@pytest.mark.parametrize("way", ["plain", "captured"])
def test_transforms_nest_in_captured_functions(way):
    matrix = tensor(np.arange(6.0).reshape(3, 2) / 5)

    def squares(x):
        return (oar.tanh(matrix @ x) ** 2).sum()

    def transform(x):
        slope = grad(squares)
        rows = vmap(lambda v: vjp(slope, x, v)[1])(oar.eye(2, dtype="float64"))
        return slope(x), rows, vmap(squares)(oar.stack([x, 2 * x]))

    x = tensor([0.3, -0.4])
    x.stop_gradient = False
    run = oar.jit.to_static(transform) if way == "captured" else transform
    slope, rows, values = run(x)
    if way == "captured":
        assert oar.jit.capture_counts(run) == {"captures": 1, "whole": 1, "segments": 0, "eager": 0}
    m, at = matrix.numpy(), x.numpy()
    y = np.tanh(m @ at)
    np.testing.assert_allclose(slope.numpy(), m.T @ (2 * y * (1 - y**2)), atol=1e-12)
    np.testing.assert_allclose(rows.numpy(), m.T @ np.diag(2 * (1 - y**2) * (1 - 3 * y**2)) @ m, atol=1e-12)
    np.testing.assert_allclose(values.numpy(), [(y**2).sum(), (np.tanh(m @ (2 * at)) ** 2).sum()], atol=1e-12)


class Tied(oar.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = oar.nn.Linear(3, 3)
        self.second = oar.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("scale", oar.to_tensor(2.0))

    def forward(self, x, shift=0.0):
        return self.second(oar.tanh(self.first(x))) * self.scale + shift


@pytest.mark.parametrize("way", ["plain", "captured"])
def test_a_layer_as_a_function_of_its_parameters(way):
    oar.seed(0)
    layer, x = Tied(), oar.randn([4, 3])
    before = {name: value.numpy().copy() for name, value in layer.state_dict().items()}
    rng = np.random.default_rng(0)
    values = {"first.weight": rng.standard_normal((3, 3)).astype("float32"), "second.bias": rng.standard_normal(3).astype("float32"),
              "scale": np.array(3.0, dtype="float32")}

    def call(given, x):
        return oar.func.functional_call(layer, given, x, shift=1.0)

    given = {name: oar.to_tensor(value, stop_gradient=False) for name, value in values.items()}
    found = (oar.jit.to_static(call) if way == "captured" else call)(given, x)
    hidden = np.tanh(x.numpy() @ values["first.weight"] + before["first.bias"])
    expected = (hidden @ values["first.weight"] + values["second.bias"]) * 3 + 1
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    found.sum().backward()
    np.testing.assert_allclose(given["second.bias"].grad.numpy(), [12, 12, 12], rtol=1e-6)
    assert given["first.weight"].grad is not None and layer.first.weight.grad is None
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert layer.second.weight is layer.first.weight


def test_an_ensemble_of_layers_is_one_call():
    oar.seed(0)
    layer, x = oar.nn.Linear(3, 2), oar.randn([4, 3])
    weights, biases = oar.randn([5, 3, 2]), oar.randn([5, 2])
    found = vmap(lambda w, b: oar.func.functional_call(layer, {"weight": w, "bias": b}, x))(weights, biases)
    np.testing.assert_allclose(found.numpy(), x.numpy() @ weights.numpy() + biases.numpy()[:, None], rtol=1e-5, atol=1e-5)


def test_functional_call_reports_names_and_shapes_and_restores_the_layer():
    layer = oar.nn.Linear(3, 2)
    own = layer.weight
    with pytest.raises(KeyError, match="kernel.*weight, bias"):
        oar.func.functional_call(layer, {"kernel": oar.ones([3, 2])}, oar.ones([1, 3]))
    with pytest.raises(ValueError, match=r"\[2, 3\].*\[3, 2\]"):
        oar.func.functional_call(layer, {"weight": oar.ones([2, 3])}, oar.ones([1, 3]))
    with pytest.raises(ValueError):
        oar.func.functional_call(layer, {"weight": oar.ones([3, 2])}, oar.ones([1, 5]))
    assert layer.weight is own
