"""Hooks and the backward of a PyLayer run at ``backward()``, after a captured function has returned: what they read and
change is read and changed then."""

import types

import numpy as np
import pytest

import oar
from oar.autograd import PyLayer


def leaf():
    return oar.to_tensor([1.0, 2.0], stop_gradient=False)


def gradient(function, between=lambda: None, x=None):
    x = leaf() if x is None else x
    y = function(x)
    between()
    y.backward()
    return x.grad.numpy().copy()


@pytest.fixture(params=[False, True], ids=["eager", "captured"])
def wrap(request):
    return oar.jit.to_static if request.param else lambda function: function


def hooked(wrap, hook):
    @wrap
    def function(x):
        y = x * 3
        y.register_hook(hook)
        return y.sum()

    return function


def test_a_hook_reads_what_is_there_at_backward(wrap):
    factor, values, holder = 2.0, [2.0], types.SimpleNamespace(k=2.0)

    def change():
        nonlocal factor
        factor = values[0] = holder.k = 5.0

    for hook in (lambda g: g * factor, lambda g: g * values[0], lambda g: g * holder.k):
        factor = values[0] = holder.k = 2.0
        function = hooked(wrap, hook)
        np.testing.assert_array_equal(gradient(function), [6, 6])
        np.testing.assert_array_equal(gradient(function, change), [15, 15])


def test_a_hook_reads_a_tensor_at_backward(wrap):
    scale = oar.ones([2])
    function = hooked(wrap, lambda g: g * scale)
    np.testing.assert_array_equal(gradient(function), [3, 3])
    np.testing.assert_array_equal(gradient(function, lambda: scale.set_value(scale * 4)), [12, 12])


@pytest.mark.parametrize("effect", ["append", "attribute", "variable", "in place", "item", "inside"])
def test_a_hook_has_its_effects_at_backward(wrap, effect):
    seen, holder, count, total = [], types.SimpleNamespace(n=0), 0, oar.zeros([2])

    def hook(g):
        nonlocal count
        if effect == "append":
            seen.append(1)
        elif effect == "attribute":
            holder.n += 1
        elif effect == "variable":
            count += 1
        elif effect == "in place":
            total.add_(g)
        elif effect == "item":
            total[0] = total[0] + g[0]

    @wrap
    def function(x):
        y, own = x * 3, []
        y.register_hook(own.append if effect == "inside" else hook)
        return y.sum(), own

    x, done = leaf(), []
    for calls in (1, 2):
        y, own = function(x)
        done = [len(seen), holder.n, count, float(total[0]), len(own)]
        assert sum(done) == (0 if effect == "inside" else calls - 1)
        y.backward(retain_graph=True)
        done = [len(seen), holder.n, count, float(total[0]), len(own)]
        assert sum(done) == (1 if effect == "inside" else calls)


def test_a_hook_prints_at_backward(wrap, capsys):
    y = hooked(wrap, lambda g: print("ran"))(leaf())
    assert capsys.readouterr().out == ""
    y.backward()
    assert capsys.readouterr().out == "ran\n"


def test_a_hook_draws_at_backward():
    found = []
    for wrap in (lambda function: function, oar.jit.to_static):
        function = hooked(wrap, lambda g: g * oar.rand([2]))
        oar.seed(5)
        x = leaf()
        first, second = function(x), function(x)
        drawn = oar.rand([2])
        second.backward()
        first.backward()
        found.append([drawn.numpy(), x.grad.numpy(), oar.rand([2]).numpy()])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_hook_sees_the_gradient_mode_of_backward(wrap):
    function = hooked(wrap, lambda g: g * 2 if oar.is_grad_enabled() else g * 5)
    np.testing.assert_array_equal(gradient(function), [15, 15])
    x = leaf()
    np.testing.assert_array_equal(oar.grad(function(x), x, create_graph=True)[0].numpy(), [6, 6])


class Scaled(PyLayer):
    factor = 2.0
    runs = []

    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        Scaled.runs.append(1)
        return grad * Scaled.factor


class Kept(PyLayer):
    """Reads only what its forward has kept."""

    @staticmethod
    def forward(ctx, x, factor):
        y = oar.exp(x)
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensor()
        return oar.clip(grad.astype(oar.float32) * y + x, -100.0, 100.0) * ctx.factor


@pytest.mark.parametrize("in_a_branch", [False, True])
def test_the_backward_of_a_py_layer_is_that_of_its_time(wrap, in_a_branch):
    def function(x):
        if in_a_branch:
            return (Scaled.apply(x) if x.sum() > 0 else x).sum()
        return Scaled.apply(x).sum()

    function = wrap(function)
    Scaled.factor, Scaled.runs[:] = 2.0, []
    np.testing.assert_array_equal(gradient(function), [2, 2])
    np.testing.assert_array_equal(gradient(function, lambda: setattr(Scaled, "factor", 7.0)), [7, 7])
    assert len(Scaled.runs) == 2


def test_derivatives_of_what_the_function_made_are_part_of_the_program():
    @oar.jit.to_static
    def hook_of_arguments(x, k):
        y = x * 3
        y.register_hook(lambda g: oar.clip(g * k, -10.0, 10.0))
        return y.sum()

    @oar.jit.to_static
    def layer(x, k):
        return Kept.apply(x, k).sum()

    @oar.jit.to_static
    def layer_in_a_branch(x, k):
        return (Kept.apply(x, k) if x.sum() > 0 else x).sum()

    for function, wanted in ((hook_of_arguments, lambda x, k: 0 * x + 3 * min(k, 10)),
                             (layer, lambda x, k: (np.exp(x) + x) * k), (layer_in_a_branch, lambda x, k: (np.exp(x) + x) * k)):
        for k in (2.0, 20.0, 2.0):
            x = leaf()
            np.testing.assert_allclose(gradient(lambda x: function(x, k), x=x), wanted(x.numpy(), k), rtol=1e-6)
        assert oar.jit.capture_counts(function) == {"captures": 2, "whole": 3, "segments": 0, "eager": 0}


def test_a_step_with_its_own_backward_is_one_program():
    weight = leaf()
    factor = [2.0]

    @oar.jit.to_static
    def step(x):
        y = Kept.apply(x * weight, 3.0)
        y.register_hook(lambda g: g * factor[0])
        y.sum().backward()
        found = weight.grad * 1
        weight.clear_grad()
        return found

    x = oar.ones([2])
    found = [step(x).numpy(), step(x).numpy()]
    factor[0] = 4.0
    found.append(step(x).numpy())
    z = weight.numpy()
    for got, k in zip(found, (2, 2, 4)):
        np.testing.assert_allclose(got, (k * np.exp(z) + z) * 3, rtol=1e-6)
    assert oar.jit.capture_counts(step) == {"captures": 2, "whole": 3, "segments": 0, "eager": 0}


def test_a_tensor_on_the_way_keeps_its_gradient(wrap):
    @wrap
    def function(x):
        y = x * 2
        y.retain_grads()
        return y, (y * y).sum()

    @wrap
    def step(x):
        y = x * 2
        y.retain_grads()
        (y * y).sum().backward()
        return y, y.grad * 1

    for _ in range(2):
        y, z = function(leaf())
        z.backward()
        np.testing.assert_array_equal(y.grad.numpy(), [4, 8])
        weight = leaf()
        y, grad = step(weight)
        np.testing.assert_array_equal(y.grad.numpy(), [4, 8])
        np.testing.assert_array_equal(grad.numpy(), [4, 8])


def test_a_gradient_that_is_kept_and_read_inside_is_part_of_the_program():
    weight = leaf()

    @oar.jit.to_static
    def step(x):
        y = x * weight
        y.retain_grads()
        (y * y).sum().backward()
        weight.clear_grad()
        return y.grad * 1

    for _ in range(2):
        np.testing.assert_array_equal(step(oar.ones([2])).numpy(), [2, 4])
    assert oar.jit.capture_counts(step)["whole"] == 2
