"""Ops of a user's own: eager, to order 3, batched, in both modes of differentiation."""

import numpy as np
import pytest

import oar
from oar.utils import register_op

cube = register_op("test_cube(Tensor x, float scale = 1.0) -> Tensor", lambda x, scale: x * x * x * scale,
                   brief="scale * x cubed.", numpy="scale * x**3")

calls = []


def _square(x):
    return x * x


def _square_vjp(x, outputs, grads):
    calls.append("vjp")
    return [grads[0] * 2.0 * x]


square = register_op("test_square_with_rule(Tensor x) -> Tensor", _square, vjp=_square_vjp, saves="x")


def leaf(values):
    return oar.to_tensor(values, dtype="float64", stop_gradient=False)


def test_eager():
    x = oar.to_tensor([1.0, -2.0, 3.0])
    np.testing.assert_allclose(cube(x).numpy(), [1, -8, 27])
    np.testing.assert_allclose(cube(x, scale=2.0).numpy(), [2, -16, 54])
    np.testing.assert_allclose(oar._C.ops.test_cube(x, 0.5).numpy(), [0.5, -4, 13.5])


def test_orders():
    x = leaf([1.0, -2.0, 3.0])
    value, expected = cube(x, 1.0), [lambda v: 3 * v ** 2, lambda v: 6 * v, lambda v: 6 + 0 * v]
    for rule in expected:
        (value,) = oar.grad(value.sum(), x, create_graph=True)
        np.testing.assert_allclose(value.numpy(), rule(x.numpy()))


def test_own_rule_is_used_and_differentiates_again():
    calls.clear()
    x = leaf([1.0, 2.0])
    (g,) = oar.grad(square(x).sum(), x, create_graph=True)
    assert calls == ["vjp"]
    np.testing.assert_allclose(g.numpy(), [2, 4])
    (h,) = oar.grad(g.sum(), x)
    np.testing.assert_allclose(h.numpy(), [2, 2])


def test_transforms():
    x = oar.to_tensor(np.arange(6.0).reshape(3, 2), dtype="float64")
    np.testing.assert_allclose(oar.func.vmap(cube)(x).numpy(), x.numpy() ** 3)
    _, slope = oar.func.jvp(cube, x, oar.ones_like(x))
    np.testing.assert_allclose(slope.numpy(), 3 * x.numpy() ** 2)
    per_row = oar.func.vmap(oar.func.grad(lambda r: cube(r).sum()))(x)
    np.testing.assert_allclose(per_row.numpy(), 3 * x.numpy() ** 2)


def test_errors():
    with pytest.raises(ValueError, match="registered already"):
        register_op("test_cube(Tensor x) -> Tensor", lambda x: x)
    with pytest.raises(ValueError):
        register_op("this is no schema", lambda x: x)
    with pytest.raises(ValueError, match="not a trait"):
        register_op("test_other(Tensor x) -> Tensor", lambda x: x, traits=("magic",))
    with pytest.raises(TypeError, match=r"\[test_cube\]"):
        cube(None)

    def broken(x):
        raise KeyError("mine")
    op = register_op("test_broken(Tensor x) -> Tensor", broken)
    with pytest.raises(KeyError, match="mine"):
        op(oar.ones([2]))
    np.testing.assert_allclose(cube(oar.ones([2])).numpy(), [1, 1])  # still works
