"""What clear_grad() leaves: zeros that cost nothing until they are read, or None."""

import copy
import pickle

import numpy as np
import pytest

import oar
from oar import nn


def leaf(*values, dtype="float32"):
    return oar.to_tensor(list(values), dtype=dtype, stop_gradient=False)


def cleared(*values, **options):
    x = leaf(*values, **options)
    (x * x).sum().backward()
    x.clear_grad()
    return x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_zeros_of_shape_and_dtype(dtype):
    x = oar.ones([2, 0, 3], dtype), oar.ones([2, 3], dtype), oar.ones([], dtype)
    for t in x:
        t.stop_gradient = False
        (t * 2).sum().abs().backward()
        t.clear_grad()
        assert t.grad.shape == t.shape and t.grad.dtype == t.dtype and t.grad.stop_gradient
        assert not t.grad.astype("complex64").numpy().any()


def test_the_zeros_are_one_tensor():
    x = cleared(1.0, 2.0)
    zeros = x.grad
    assert x.grad is zeros
    zeros.add_(oar.ones([2]))
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])
    (x * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4, 4])


def test_clearing_again_and_clearing_none():
    x = cleared(1.0)
    x.clear_grad()
    assert x.grad.tolist() == [0.0]
    x.clear_grad()
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None
    x.clear_grad()
    assert x.grad is None
    x = cleared(1.0)
    x.clear_gradient(False)
    assert x.grad is None
    x = cleared(1.0)
    x.grad = None
    assert x.grad is None


def test_a_gradient_that_was_read_before_keeps_its_values():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    read = x.grad
    x.clear_grad()
    np.testing.assert_array_equal(read.numpy(), [2, 4])
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0])


def test_the_next_gradient_takes_the_place_of_the_zeros():
    x = cleared(1.0, 2.0)
    upstream = oar.to_tensor([-0.0, 5.0])
    (x * 1).backward(upstream)
    assert np.signbit(x.grad.numpy()).tolist() == [True, False]  # 0 + -0 would be 0
    x.grad.add_(oar.ones([2]))
    np.testing.assert_array_equal(upstream.numpy(), [0, 5])
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 10])


def test_views_hooks_and_retained_gradients_add_to_the_zeros():
    x = cleared(1.0, 2.0, 3.0)
    (x[:1] * 2 + x[1:2] * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 3, 0])
    x.clear_grad()
    x.register_hook(lambda g: g * 10)
    (x * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [20, 20, 20])
    y = leaf(1.0) * 2
    y.retain_grads()
    y.backward(retain_graph=True)
    y.clear_grad()
    assert y.grad.tolist() == [0.0]
    y.clear_grad()
    y.backward()
    assert y.grad.tolist() == [1.0]


def test_gradients_of_gradients_after_a_clear():
    x = cleared(1.0, 2.0)
    (g,) = oar.grad((x**3).sum(), x, create_graph=True)
    assert x.grad.tolist() == [0.0, 0.0]
    x.clear_grad()
    (g * x.grad).sum().backward()  # times zeros
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0])
    x.clear_grad()
    (oar.grad((x**3).sum(), x, create_graph=True)[0] ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [36, 288])


def test_copies_and_pickles():
    layer = nn.Linear(2, 2)
    layer(oar.ones([1, 2])).sum().backward()
    layer.clear_gradients()
    twin = copy.deepcopy(layer)
    np.testing.assert_array_equal(twin.weight.numpy(), layer.weight.numpy())
    again = pickle.loads(pickle.dumps(layer.weight))
    np.testing.assert_array_equal(again.numpy(), layer.weight.numpy())
    assert layer.weight.grad.numpy().tolist() == [[0, 0], [0, 0]]
    layer.to(dtype="float64")
    assert layer.weight.grad.dtype == oar.float64


def test_an_optimizer_moves_with_zeros_and_rests_with_none():
    with_zeros, with_none = [oar.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(1.0))
                             for _ in range(2)]
    for p in (with_zeros, with_none):
        (p * 2).sum().backward()
    optimizer = oar.optimizer.Momentum(0.1, 0.9, parameters=[with_zeros, with_none], weight_decay=0.5)
    optimizer.step()
    with_zeros.clear_gradient()
    with_none.clear_gradient(False)
    before = with_none.numpy().copy()
    velocity = 2 + 0.5
    optimizer.step()
    np.testing.assert_array_equal(with_none.numpy(), before)
    np.testing.assert_allclose(with_zeros.numpy(), before - 0.1 * (0.9 * velocity + 0.5 * before), rtol=1e-6)


def test_rows_of_an_embedding_are_removed():
    table = nn.Embedding(4, 2, sparse=True)
    table(oar.to_tensor([1, 2])).sum().backward()
    table.weight.clear_grad()
    assert table.weight.grad is None


def test_zeros_in_a_static_program_are_those_of_the_tensor():
    x = cleared(1.0)
    oar.enable_static()
    try:
        with oar.static.program_guard(oar.static.Program()):
            assert x.grad._kind == "dense"
    finally:
        oar.disable_static()
    assert x.grad.tolist() == [0.0]
