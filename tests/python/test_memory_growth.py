"""What is no longer used is freed: steps of PyLayers, layers, programs."""

import gc
import weakref

import numpy as np
import pytest

import oar
from oar.autograd import PyLayer


class Exp(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = oar.exp(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        _, y = ctx.saved_tensor()
        return grad * y


def leaf(values):
    return oar.to_tensor(np.asarray(values, "float32"), stop_gradient=False)


def test_a_pylayer_that_saves_its_result_is_freed():
    class Marked:
        pass

    marks = []

    class Keeping(Exp):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = Marked()
            marks.append(weakref.ref(ctx.mark))
            return Exp.forward(ctx, x)

    x = leaf([1.0])
    y = Keeping.apply(x)
    assert marks[0]() is not None
    del y
    gc.collect()
    assert marks[0]() is None


def test_derivatives_of_a_pylayer_that_saves_its_result():
    x = leaf([0.5, 1.5])
    y = Exp.apply(x)
    (first,) = oar.grad(y.sum(), x, create_graph=True)
    (second,) = oar.grad(first.sum(), x, create_graph=True)
    (third,) = oar.grad(second.sum(), x)
    for derivative in (first, second, third):
        np.testing.assert_allclose(derivative.numpy(), np.exp(x.numpy()), rtol=1e-6)
    _, derivative = oar.func.jvp(Exp.apply, [x.detach()], [oar.ones([2])])
    np.testing.assert_allclose(derivative.numpy(), np.exp(x.numpy()), rtol=1e-6)


class Kept(PyLayer):
    """exp, whose context keeps the result as the test specifies."""

    @staticmethod
    def forward(ctx, x, keep, mark):
        y = oar.exp(x)
        ctx.mark = mark
        keep(ctx, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.find(ctx)


def as_attribute(ctx, y):
    ctx.y, ctx.find = y, lambda ctx: ctx.y


def in_containers(ctx, y):
    ctx.cache, ctx.find = {"parts": [1, (y, "text")]}, lambda ctx: ctx.cache["parts"][1][0]
    ctx.endless = [y.shape]
    ctx.endless.append(ctx.endless)


def twice(ctx, y):
    ctx.save_for_backward(y)
    ctx.y, ctx.find = y, lambda ctx: ctx.saved_tensor()[0] if ctx.saved_tensor()[0] is ctx.y else None


@pytest.mark.parametrize("keep", [as_attribute, in_containers, twice])
def test_a_pylayer_whose_context_holds_its_result_is_freed(keep):
    class Mark:
        pass

    marks = []
    x = leaf([0.5, 1.5])
    for _ in range(20):
        mark = Mark()
        marks.append(weakref.ref(mark))
        Kept.apply(x, keep, mark)
        del mark
    gc.collect()
    assert sum(mark() is not None for mark in marks) == 0


@pytest.mark.parametrize("keep", [as_attribute, in_containers, twice])
def test_derivatives_of_a_pylayer_whose_context_holds_its_result(keep):
    x = leaf([0.5, 1.5])
    y = Kept.apply(x, keep, None)
    for _ in range(2):  # the second time after the first has released the result
        (first,) = oar.grad(y.sum(), x, create_graph=True)
        (second,) = oar.grad(first.sum(), x, create_graph=True)
        (third,) = oar.grad(second.sum(), x, retain_graph=True)
        for derivative in (first, second, third):
            np.testing.assert_allclose(derivative.numpy(), np.exp(x.numpy()), rtol=1e-6)


def test_a_pylayer_with_two_results_that_changes_its_context_in_backward():
    class Both(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.both = [oar.exp(x), oar.sin(x)]
            ctx.runs = 0
            return tuple(ctx.both)

        @staticmethod
        def backward(ctx, exp_grad, sin_grad):
            ctx.runs += 1
            ctx.both.append(ctx.runs)
            return exp_grad * ctx.both[0] + sin_grad * (1 - ctx.both[1] ** 2).sqrt() * len(ctx.both[2:])

    x = leaf([0.5])
    first, second = Both.apply(x)
    for runs in (1, 2):
        (slope,) = oar.grad(first + second, x, retain_graph=True)
        np.testing.assert_allclose(slope.numpy(), np.exp(0.5) + runs * np.cos(0.5), rtol=1e-6)


def test_a_pylayer_that_hands_its_operand_through_and_saves_it():
    class Through(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensor()
            return grad * x

    x = leaf([3.0])
    (first,) = oar.grad(Through.apply(x * x), x, create_graph=True)
    assert first.item() == 9 * 6
    (second,) = oar.grad(first, x)
    assert second.item() == 9 * 2 + 6 * 6  # of x^2 * 2x


def test_names_of_layers_are_not_kept():
    oar.nn.Linear(2, 2)
    counts = oar.utils.unique_name.switch()
    oar.utils.unique_name.switch(counts)
    before = len(counts.ids)
    names = [oar.nn.Linear(2, 2).weight.name for _ in range(20)]
    assert len(counts.ids) == before
    assert len(set(names)) == 20
    layer = oar.nn.Layer(name_scope="naming")
    assert [layer.create_parameter([1]).name[-4:] for _ in range(2)] == [".w_0", ".w_1"]


@pytest.mark.parametrize("kind", ["Momentum", "Adam", "AdamW", "Lamb"])
def test_names_of_states_are_not_kept(kind):
    def train(layer):
        optimizer = getattr(oar.optimizer, kind)(parameters=layer.parameters())
        layer(oar.ones([1, 2])).sum().backward()
        optimizer.step()
        return [name for name in optimizer.state_dict() if name.startswith(layer.weight.name)]

    counts = oar.utils.unique_name.switch()
    oar.utils.unique_name.switch(counts)
    layer = oar.nn.Linear(2, 2)
    first, second = train(layer), train(layer)
    assert first and not set(first) & set(second)  # the next number
    before = len(counts.ids)
    names = [name for _ in range(10) for name in train(oar.nn.Linear(2, 2))]
    assert len(counts.ids) == before
    assert len(set(names)) == 10 * len(first)


@pytest.mark.parametrize("fetch", [False, True])
def test_static_programs_do_not_pile_up(fetch):
    from oar.static import variable

    oar.enable_static()
    try:
        def write():
            program = oar.static.Program()
            with oar.static.program_guard(program):
                y = oar.static.data("grown", [None, 2]) * 2 + 1
                if fetch:
                    feed = {"grown": np.ones((3, 2), "float32")}
                    (made,) = oar.static.Executor().run(program, feed=feed, fetch_list=[y])
                    assert made.shape == (3, 2) and (made == 3).all()
            return y.shape[0]

        assert hash(write()) == hash(write())  # the same symbol, which the library keeps forever
        dotted, plain = (variable._size(name, 0, None) for name in ("a.b", "a_b"))
        assert hash(dotted) != hash(plain)
    finally:
        oar.disable_static()
