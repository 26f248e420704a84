"""Derivatives of functions under Paddle's incubating path: matrices, directions, forwards and backwards."""

import numpy as np
import pytest

import oar
from oar.incubate import autograd


def pair(a, b):
    return oar.matmul(a, b), a * a


def tensors(*shapes):
    rng = np.random.default_rng(3)
    return [oar.to_tensor(rng.standard_normal(s)) for s in shapes]


def numeric(function, xs, step=1e-6):
    """All first derivatives, by central differences."""
    def flat(arrays):
        made = function(*[oar.to_tensor(a) for a in arrays])
        return np.concatenate([y.numpy().ravel() for y in autograd.utils.as_tensors(made)])

    arrays = [x.numpy() for x in xs]
    columns = []
    for k, a in enumerate(arrays):
        for i in np.ndindex(a.shape):
            up, down = [b.copy() for b in arrays], [b.copy() for b in arrays]
            up[k][i] += step
            down[k][i] -= step
            columns.append((flat(up) - flat(down)) / (2 * step))
    return np.stack(columns, 1)


def test_jacobian():
    a, b = tensors([2, 3], [3, 2])
    matrix = autograd.Jacobian(pair, [a, b])
    expected = numeric(pair, [a, b])
    assert tuple(matrix.shape) == expected.shape
    np.testing.assert_allclose(matrix[:].numpy(), expected, atol=1e-7)
    np.testing.assert_allclose(matrix[1, 2:5].numpy(), expected[1, 2:5], atol=1e-7)


def test_jacobian_of_a_batch():
    (x,) = tensors([4, 3])
    matrix = autograd.Jacobian(lambda x: oar.sin(x) * x.sum(axis=1, keepdim=True), x, is_batched=True)
    assert tuple(matrix.shape) == (4, 3, 3)
    for b in range(4):
        one = autograd.Jacobian(lambda r: oar.sin(r) * r.sum(), x[b])
        np.testing.assert_allclose(matrix[b].numpy(), one[:].numpy(), rtol=1e-7)
    with pytest.raises(ValueError, match="batch axis"):
        autograd.Jacobian(oar.sin, x[0], is_batched=True)


def test_hessian():
    (x,) = tensors([3])
    matrix = autograd.Hessian(lambda x: (x * x * x).sum() + x[0] * x[1], x)
    expected = np.diag(6 * x.numpy())
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_allclose(matrix[:].numpy(), expected)
    (rows,) = tensors([2, 3])
    batched = autograd.Hessian(lambda x: (x * x * x).sum(axis=1), rows, is_batched=True)
    np.testing.assert_allclose(batched[:].numpy(), [np.diag(6 * r) for r in rows.numpy()])
    with pytest.raises(RuntimeError, match="one value"):
        autograd.Hessian(oar.sin, x)[:]


def test_directions():
    a, b = tensors([2, 3], [3, 2])
    _, forwards = autograd.jvp(pair, [a, b])
    np.testing.assert_allclose(np.concatenate([f.numpy().ravel() for f in forwards]),
                               numeric(pair, [a, b]).sum(1), atol=1e-7)
    with pytest.raises(RuntimeError, match="shape"):
        autograd.vjp(oar.sin, a, oar.ones([1]))
    with pytest.raises(RuntimeError, match="shape"):
        autograd.jvp(oar.sin, a, oar.ones([1]))


def test_forward_grad_is_the_derivative_along_a_direction():
    a, b = tensors([2, 3], [3, 2])
    va, vb = tensors([2, 3], [3, 2])
    a.stop_gradient = b.stop_gradient = False
    made = autograd.forward_grad(list(pair(a, b)), [a, b], [va, vb])
    _, expected = autograd.jvp(pair, [a, b], [va, vb])
    for got, want in zip(made, expected):
        np.testing.assert_allclose(got.numpy(), want.numpy())
    y = (a * a).sum()
    np.testing.assert_allclose(autograd.grad(y, a).numpy(), 2 * a.numpy())


def test_the_switch_for_primitive_ops():
    assert not autograd.utils.prim_enabled()
    autograd.enable_prim()
    assert autograd.utils.prim_enabled()
    autograd.disable_prim()
