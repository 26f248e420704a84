"""saved_tensors_hooks: what the tape saves passes through a pair of functions."""

import gc
import threading
import weakref

import numpy as np
import pytest

import oar
import oar.nn.functional as F
from oar.autograd import PyLayer, saved_tensors_hooks


class Log:
    """Hooks that keep arrays and count their calls."""

    def __init__(self):
        self.packed, self.unpacked = [], 0

    def __call__(self):
        return saved_tensors_hooks(self.pack, self.unpack)

    def pack(self, x):
        assert isinstance(x, oar.Tensor) and x.stop_gradient
        self.packed.append(x.shape)
        return x.numpy().copy()

    def unpack(self, array):
        self.unpacked += 1
        return oar.to_tensor(array)


def leaf(*shape, seed=0):
    return oar.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"), stop_gradient=False)


def test_operands_and_results_are_packed_once_and_found_again():
    a, b, log = leaf(2, 3), leaf(2, 3, seed=1), Log()
    with log():
        y = oar.exp(a * b)
    assert log.packed == [[2, 3]] * 3 and log.unpacked == 0  # both factors, and the result of exp
    y.sum().backward()
    assert log.unpacked == 3
    expected = np.exp(a.numpy() * b.numpy())
    np.testing.assert_allclose(a.grad, expected * b.numpy(), rtol=1e-6)
    np.testing.assert_allclose(b.grad, expected * a.numpy(), rtol=1e-6)


def test_only_what_is_needed_is_packed():
    a, log = leaf(2, 3), Log()
    with log():
        y = a.reshape([3, 2]).mean(0) + 1.0  # shapes alone
        with oar.no_grad():
            a * a
    assert log.packed == []
    y.sum().backward()
    np.testing.assert_allclose(a.grad, np.full([2, 3], 1 / 3), rtol=1e-6)


def test_lists_of_tensors():
    a, b, log = leaf(3), leaf(3, seed=1), Log()
    with log():
        y = oar.einsum("i,i->", a, b)
    y.backward()
    np.testing.assert_allclose(a.grad, b.numpy())
    assert log.packed


def test_the_content_is_what_unpack_returns():
    a = leaf(3)
    with saved_tensors_hooks(lambda x: x.numpy(), lambda x: oar.to_tensor(10 * x)):
        y = a * a
    y.sum().backward()
    np.testing.assert_allclose(a.grad, 20 * a.numpy(), rtol=1e-6)


def test_the_innermost_pair_acts_and_the_outer_one_returns():
    outer, inner, a = Log(), Log(), leaf(2)
    with outer():
        first = oar.exp(a)
        with inner():
            second = oar.exp(first)
        third = oar.exp(second)
    oar.exp(third).sum().backward()
    assert (len(outer.packed), len(inner.packed)) == (2, 1) and (outer.unpacked, inner.unpacked) == (2, 1)
    with pytest.raises(KeyError), inner():
        raise KeyError
    oar.exp(a)
    assert len(inner.packed) == 1


def test_hooks_belong_to_a_thread():
    log, a = Log(), leaf(2)
    with log():
        thread = threading.Thread(target=lambda: oar.exp(a))
        thread.start()
        thread.join()
    assert log.packed == []


def test_hooks_that_compute():
    a, calls = leaf(4), []

    def pack(x):
        calls.append(x)
        return (x * 2.0).astype("float16")  # passes through no hook

    with saved_tensors_hooks(pack, lambda x: x.astype("float32") / 2.0):
        y = oar.sin(a)
    y.sum().backward()
    assert len(calls) == 1
    np.testing.assert_allclose(a.grad, np.cos(a.numpy()), atol=2e-3)


@pytest.mark.parametrize("retain", [False, True])
def test_second_backward(retain):
    a, log = leaf(2), Log()
    with log():
        y = oar.exp(a).sum()
    y.backward(retain_graph=retain)
    if retain:
        y.backward()
        assert log.unpacked == 2
    else:
        with pytest.raises(RuntimeError, match="freed"):
            y.backward()


@pytest.mark.parametrize("function", [lambda x: x * x * x, lambda x: oar.exp(oar.sin(x)), lambda x: F.softmax(x @ x.T)[0]])
def test_higher_derivatives(function):
    def second(x):
        (slope,) = oar.grad(function(x).sum(), [x], create_graph=True)
        (curvature,) = oar.grad((slope * slope).sum(), [x], create_graph=True)
        return oar.grad(curvature.sum(), [x])[0].numpy()

    x, log = leaf(3, 3), Log()
    expected = second(x)
    with log():
        found = second(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert log.unpacked > 0


def test_a_saved_tensor_may_be_overwritten_afterwards():
    a, log = leaf(3), Log()
    with log():
        y = a * 1.0
        z = oar.exp(y)
        w = y * z
        expected = y.numpy()
        y.fill_(0.0)
    w.sum().backward()
    np.testing.assert_allclose(a.grad, np.exp(expected) * (1 + expected), rtol=1e-5)


def test_in_place_ops():
    a, log = leaf(3), Log()
    with log():
        y = a * 1.0
        y.multiply_(y)
        y.exp_()
    y.sum().backward()
    np.testing.assert_allclose(a.grad, 2 * a.numpy() * np.exp(a.numpy() ** 2), rtol=1e-5)


class Product(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        y = a * b
        ctx.save_for_backward(a, b, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        a, b, y = ctx.saved_tensor()
        return grad * b, grad * y / b


def test_py_layers():
    a, b, log = leaf(3), leaf(3, seed=1), Log()
    with log():
        y = Product.apply(a, b)
    assert log.packed == [[3]] * 3
    y.sum().backward()
    assert log.unpacked == 3
    np.testing.assert_allclose(a.grad, b.numpy(), rtol=1e-6)
    np.testing.assert_allclose(b.grad, a.numpy(), rtol=1e-5)


@pytest.mark.parametrize("hooked", [False, True])
def test_higher_derivatives_of_py_layers(hooked):
    a, b, log = leaf(3), leaf(3, seed=1), Log()

    def slopes():
        grads = oar.grad(Product.apply(a * 2.0, b).sum(), [a, b], create_graph=True)
        return oar.grad((grads[0] ** 2).sum() + (grads[1] ** 3).sum(), [a, b])

    if hooked:
        with log():
            found = slopes()
        assert log.unpacked > 0
    else:
        found = slopes()
    # grads are 2b and 2a, so the sum is 4b² + 8a³
    np.testing.assert_allclose(found[0], 24 * a.numpy() ** 2, rtol=1e-4)
    np.testing.assert_allclose(found[1], 8 * b.numpy(), rtol=1e-4)


def test_saved_results_of_a_py_layer_are_freed():
    a, b = leaf(3), leaf(3, seed=1)
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        y = Product.apply(a, b)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_memory_is_released():
    with saved_tensors_hooks(lambda x: x.numpy().astype("float16"), lambda x: oar.to_tensor(x.astype("float32"))):
        x = oar.full([1000], 0.5)
        x.stop_gradient = False
        y = x * 1.0
        alive = weakref.ref(y)
        z = oar.exp(y)
        w = y * z
        del y, z
    assert alive() is None
    w.sum().backward()
    np.testing.assert_allclose(x.grad, np.full(1000, np.exp(0.5) * 1.5), rtol=1e-3)


def test_captured_functions_do_not_call_them():
    log, a = Log(), leaf(3)
    step = oar.jit.to_static(lambda x: oar.exp(x * x).sum())
    expected = oar.grad(oar.exp(a * a).sum(), [a])[0].numpy()
    for _ in range(2):
        with log():
            y = step(a)
        np.testing.assert_allclose(oar.grad(y, [a])[0], expected, rtol=1e-5)


def test_mistakes():
    a = leaf(3)
    with pytest.raises(TypeError, match="unpack_hook"):
        saved_tensors_hooks(lambda x: x, None)
    with saved_tensors_hooks(lambda x: x, lambda x: None):
        y = oar.exp(a)
    with pytest.raises(TypeError, match="unpack hook must return a tensor"):
        y.sum().backward()
    with saved_tensors_hooks(lambda x: x, lambda x: x[:2]):
        y = oar.exp(a)
    with pytest.raises(ValueError, match=r"exp.* has saved"):
        y.sum().backward()
    with saved_tensors_hooks(lambda x: 1 / 0, lambda x: x), pytest.raises(ZeroDivisionError):
        oar.exp(a)
