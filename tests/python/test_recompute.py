"""Recomputation: the same bits with less memory, eagerly and in programs."""

import gc
import threading

import numpy as np
import pytest

import oar
from oar import nn
from oar.distributed.fleet.utils import recompute
from oar.incubate.distributed.fleet import recompute_hybrid, recompute_sequential


class Alone:
    nranks, rank = 1, 0


def call_recompute(block, x):
    return recompute(block, x)


CALLS = {
    "plain": lambda block, x: block(x),
    "recompute": call_recompute,
    "not reentrant": lambda block, x: recompute(block, x, use_reentrant=False),
    "hybrid": lambda block, x: recompute_hybrid({"mp_group": Alone}, block, x),
    "offload": lambda block, x: recompute(block, x, offload_indices=[0]),
    "keyword": lambda block, x: recompute(lambda *, x: block(x), x=x),
    "nested": lambda block, x: recompute(lambda x: recompute(block, x) * 1.0, x),
}


def block():
    return nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.LayerNorm(12), nn.Dropout(0.4), nn.Linear(12, 6))


def train(call, amp=False, steps=2, static=False):
    oar.seed(3)
    blocks = nn.LayerList([block() for _ in range(3)])
    optimizer = oar.optimizer.SGD(0.1, parameters=blocks.parameters())

    def loss_of(x):
        with oar.amp.auto_cast(enable=amp, dtype="bfloat16"):
            for one in blocks:
                x = call(one, x)
            return x.astype("float32").square().mean()

    run = oar.jit.to_static(loss_of) if static else loss_of
    losses = []
    for _ in range(steps):
        loss = run(oar.randn([4, 6]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses, [p.numpy() for p in blocks.parameters()], oar.rand([2]).tolist()


def assert_same(found, wanted, exact=True):
    for one, other in zip(found[1], wanted[1]):
        np.testing.assert_array_equal(one, other) if exact else np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert found[2] == wanted[2] and (found[0] == wanted[0] if exact else np.allclose(found[0], wanted[0], rtol=1e-5))


@pytest.mark.parametrize("amp", [False, True])
@pytest.mark.parametrize("name", list(CALLS)[1:])
def test_losses_parameters_and_random_numbers_are_the_same(name, amp):
    assert_same(train(CALLS[name], amp), train(CALLS["plain"], amp))


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_sequential(segments):
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))
    results = []
    for call in (net, lambda x: recompute_sequential({"segments": segments}, net, x), lambda x: recompute_sequential({"segments": segments}, list(net), x)):
        oar.seed(1)
        x = oar.ones([2, 3])
        x.stop_gradient = False
        y = call(x)
        y.sum().backward()
        results.append([y.numpy(), x.grad.numpy(), net[0].weight.grad.numpy().copy()])
        net.clear_gradients()
    for found in results[1:]:
        for one, other in zip(found, results[0]):
            np.testing.assert_array_equal(one, other)


def test_sequential_passes_arguments_to_the_first():
    functions = [lambda a, b, scale=1.0: (a + b) * scale, lambda x: x * 2.0]
    a = oar.ones([2])
    a.stop_gradient = False
    result = recompute_sequential({"segments": 2, "preserve_rng_state": False}, functions, a, oar.ones([2]), scale=3.0)
    result.sum().backward()
    assert result.tolist() == [12.0, 12.0] and a.grad.tolist() == [6.0, 6.0]


def held(call, depth=8):
    """Bytes that the tape holds after the forward pass, and at most during the backward pass."""
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(depth)]
    x = oar.randn([256, 64])
    gc.collect()
    before = oar.device.memory_allocated()
    oar.device.reset_max_memory_allocated()
    y = x
    for one in blocks:
        y = call(one, y)
    after = oar.device.memory_allocated() - before
    y.sum().backward()
    return after, oar.device.max_memory_allocated() - before


def test_memory_drops():
    plain, less = held(CALLS["plain"]), held(call_recompute)
    inputs = 256 * 64 * 4
    assert plain[0] > 8 * 8 * inputs and less[0] <= 9 * inputs  # only the inputs of the blocks, and the result
    assert less[1] < 0.6 * plain[1]
    whole = held(lambda one, y: recompute(lambda y: recompute(one, y) + 0.0, y))
    assert whole[0] <= 9 * inputs


def test_a_block_inside_of_a_block_keeps_nothing():
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(6)]

    def run(x):
        for one in blocks:
            x = recompute(one, x)
        return x

    x = oar.randn([256, 64])
    gc.collect()
    before = oar.device.memory_allocated()
    y = recompute(run, x)
    assert oar.device.memory_allocated() - before <= 1.1 * 256 * 64 * 4  # the result
    y.sum().backward()
    assert blocks[0][0].weight.grad is not None


def test_the_last_op_does_not_run_again():
    calls = []

    def function(x):
        calls.append("begins")
        y = oar.exp(x * 2.0).sum()
        calls.append("ends")
        return y

    x = oar.ones([3])
    x.stop_gradient = False
    recompute(function, x).backward()
    assert calls.count("begins") == 2 and calls.count("ends") == 1
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2.0) * np.ones(3), rtol=1e-6)


@pytest.mark.parametrize("call", [lambda f, *a: recompute(f, *a), lambda f, *a: recompute(lambda *a: recompute(f, *a) * 1.0, *a)])
def test_gradients_of_higher_order(call):
    x, w = (oar.to_tensor(np.random.default_rng(i).normal(size=(3, 3)).astype("float32"), stop_gradient=False) for i in (0, 1))

    def function(x):
        return oar.tanh(x @ w) @ w

    def third(f):
        gx, gw = oar.grad((f(x) ** 2).sum(), [x, w], create_graph=True)
        hx, hw = oar.grad((gx**2).sum() + (gw**3).sum(), [x, w], create_graph=True)
        return [t.numpy() for t in oar.grad((hx * hw).sum(), [x, w])]

    for found, wanted in zip(third(lambda x: call(function, x)), third(function)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_backward_again_and_partial_gradients():
    w = oar.ones([2], dtype="float32")
    w.stop_gradient = False
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    y = recompute(lambda x: oar.exp(x * w), x).sum()
    first = oar.grad(y, [w], retain_graph=True)[0].numpy()
    again = oar.grad(y, [w], retain_graph=True)[0].numpy()
    np.testing.assert_array_equal(first, again)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


def test_containers_flags_and_other_values():
    a, b = oar.ones([2]), oar.full([2], 3.0)
    a.stop_gradient = b.stop_gradient = False
    fixed = oar.full([2], 5.0)

    def function(pair, named, n, *, flag=False, text=""):
        (first, kept), second = pair, named["b"]
        assert type(pair) is tuple and kept.stop_gradient and not first.stop_gradient and flag and text == "x" and n == 2
        return {"sum": first * second * kept * n, "other": [second.square(), "y"]}

    result = recompute(function, (a, fixed), {"b": b, "c": None}, 2, flag=True, text="x")
    assert result["other"][1] == "y"
    (result["sum"] + result["other"][0]).sum().backward()
    assert a.grad.tolist() == [30.0, 30.0] and b.grad.tolist() == [16.0, 16.0] and fixed.grad is None


def test_without_gradients_it_is_a_call():
    net = nn.Linear(2, 2)
    calls = []
    with oar.no_grad():
        y = recompute(lambda x: calls.append(1) or net(x), oar.ones([1, 2]))
    assert y.stop_gradient and calls == [1]


def test_parameters_get_gradients_though_no_input_requires_one():
    net = nn.Linear(2, 2)
    recompute(net, oar.ones([1, 2])).sum().backward()
    assert net.weight.grad is not None


def test_transforms_see_the_function():
    net = nn.Linear(3, 3)
    x = oar.randn([4, 3])
    found = oar.func.vmap(lambda row: recompute(net, row).sum())(x)
    np.testing.assert_allclose(found.numpy(), net(x).sum(-1).numpy(), rtol=1e-5)
    _, tangent = oar.func.jvp(lambda x: recompute(lambda x: x * x, x), (x,), (oar.ones([4, 3]),))
    np.testing.assert_allclose(tangent.numpy(), 2 * x.numpy(), rtol=1e-6)


def test_backward_in_another_thread():
    net, x = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Tanh()), oar.ones([2, 3])
    y = recompute(net, x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert net[0].weight.grad is not None


def test_in_place_ops_inside():
    def function(x):
        y = x * 2.0
        y.multiply_(y)
        return y.exp_() * 1.0

    results = []
    for call in (function, lambda x: recompute(function, x)):
        x = oar.to_tensor([0.3, 0.5], stop_gradient=False)
        call(x).sum().backward()
        results.append(x.grad.numpy())
    np.testing.assert_array_equal(*results)


def test_what_changed_in_between_is_an_error():
    x, w = (oar.to_tensor([0.3, 0.5], stop_gradient=False) for _ in range(2))
    given = x * 1.0
    y = recompute(oar.exp, given)
    given.fill_(0.0)
    with pytest.raises(RuntimeError, match=r"\[recompute\] an input of shape \[2\] has been changed in place"):
        y.sum().backward()
    y = recompute(lambda x: x * w * x, x)
    with oar.no_grad():
        w.fill_(0.0)
    with pytest.raises(RuntimeError, match=r"\[recompute\] a tensor of shape \[2\].*has been changed in place"):
        y.sum().backward()


def test_a_function_that_computes_something_else_is_an_error():
    x = oar.ones([2, 2])
    x.stop_gradient = False
    runs = []

    def smaller(x):
        runs.append(1)
        return oar.exp(x[: 3 - len(runs)]).sum()

    with pytest.raises(RuntimeError, match=r"\[recompute\] the function saved a tensor of shape \[1, 2\].*first saved one of shape \[2, 2\]"):
        recompute(smaller, x).backward()
    with pytest.raises(RuntimeError, match=r"\[recompute\] the function saved fewer tensors"):
        recompute(lambda x: (runs.append(1) or oar.exp(x).sum()) if len(runs) < 3 else x.sum(), x).backward()


def test_mistakes():
    x = oar.ones([1])
    for call, error, text in (
        (lambda: recompute(3, x), TypeError, r"\[recompute\] function must be a layer or a function"),
        (lambda: recompute(oar.exp, x, preserve_rng_state="yes"), TypeError, "preserve_rng_state"),
        (lambda: recompute(oar.exp, x, offload_indices=0), TypeError, "offload_indices must be a list"),
        (lambda: recompute(oar.exp, x, offload_indices=[1]), ValueError, "there are 1 arguments"),
        (lambda: recompute(lambda a: a[0], (x,), offload_indices=[0]), ValueError, "argument 0 is a tuple"),
        (lambda: recompute_sequential({"segments": 0}, [oar.exp], x), ValueError, r"\[recompute_sequential\] segments is 0"),
        (lambda: recompute_sequential(2, [oar.exp], x), TypeError, "ctx must be a dict"),
        (lambda: recompute_hybrid({}, oar.exp, x), AssertionError, "mp_group"),
        (lambda: recompute(oar.exp, x, unknown=1), (TypeError, ValueError), "unknown"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_hybrid_returns_tuples():
    x = oar.ones([2])
    x.stop_gradient = False
    values, index = recompute_hybrid({"mp_group": Alone, "offload": True}, lambda x: [x * x, oar.argmax(x)], x)
    values.sum().backward()
    assert index.stop_gradient and x.grad.tolist() == [2.0, 2.0]


# in programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["recompute", "not reentrant", "nested"])
@pytest.mark.parametrize("amp", [False, True])
def test_captured_functions(name, amp):
    plain = train(CALLS["plain"], amp, static=True)
    assert_same(train(CALLS[name], amp, static=True), plain)
    assert_same(plain, train(CALLS["plain"], amp), exact=False) if not amp else None


def test_captured_whole():
    net = block()
    function = oar.jit.to_static(lambda x: recompute(net, x).sum())
    function(oar.ones([2, 6])).backward()
    assert oar.jit.capture_counts(function)["whole"] == 1


def step_of(blocks, optimizer, call):
    @oar.jit.to_static
    def step(x):
        for one in blocks:
            x = call(one, x)
        loss = (x - 1.0).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def peak(call, whole_step):
    oar.seed(4)
    blocks = nn.LayerList([nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 32)) for _ in range(6)])
    optimizer = oar.optimizer.SGD(0.1, parameters=blocks.parameters())
    x = oar.randn([256, 32])
    gc.collect()
    before = oar.device.memory_allocated()  # a program keeps its working memory after the first run
    oar.device.reset_max_memory_allocated()
    if whole_step:
        step = step_of(blocks, optimizer, call)
    else:
        @oar.jit.to_static
        def forward(x):
            for one in blocks:
                x = call(one, x)
            return (x - 1.0).square().mean()

        def step(x):
            loss = forward(x)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

    losses = [step(x).item() for _ in range(3)]
    return losses, oar.device.max_memory_allocated() - before


@pytest.mark.parametrize("whole_step", [False, True])
def test_memory_of_programs_drops(whole_step):
    (wanted, plain), (found, less) = peak(CALLS["plain"], whole_step), peak(call_recompute, whole_step)
    # Passes may choose other kernels for calls whose values are kept.
    assert np.allclose(found, wanted, rtol=1e-5) and wanted[2] < wanted[0] and less < 0.7 * plain


def test_captured_gradients_of_higher_order():
    w = oar.to_tensor(np.random.default_rng(1).normal(size=(3, 3)).astype("float32"), stop_gradient=False)
    x = oar.to_tensor(np.random.default_rng(0).normal(size=(3, 3)).astype("float32"), stop_gradient=False)

    def second(f):
        gx, gw = oar.grad((f(x) ** 2).sum(), [x, w], create_graph=True)
        return [t.numpy() for t in oar.grad((gx**2).sum() + (gw**3).sum(), [x, w])]

    def function(x):
        return oar.tanh(x @ w) @ w

    captured = oar.jit.to_static(lambda x: recompute(function, x))
    for found, wanted in zip(second(captured), second(function)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_a_captured_function_that_computes_gradients_itself():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))

    def penalty(call, x):
        (slope,) = oar.grad(call(net, x).sum(), [x], create_graph=True)
        return slope.square().sum()

    results = []
    for call in (CALLS["plain"], call_recompute):
        for wrap in (lambda f: f, oar.jit.to_static):
            x = oar.full([2, 3], 0.5)
            x.stop_gradient = False
            loss = wrap(lambda x, call=call: penalty(call, x))(x)
            loss.backward()
            results.append([loss.item(), x.grad.numpy(), net[0].weight.grad.numpy().copy()])
            net.clear_gradients()
    for found in results[1:]:
        for one, other in zip(found, results[0]):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_functions_in_segments():
    net = block()

    def function(x):
        y = recompute(net, x)
        return y * float(y.detach().abs().max())  # needs a value

    results = []
    for call in (function, oar.jit.to_static(function)):
        oar.seed(2)
        call(oar.ones([2, 6])).sum().backward()
        results.append(net[0].weight.grad.numpy().copy())
        net.clear_gradients()
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_branches_inside_a_block():
    net = nn.Linear(3, 3)

    def function(x):
        y = net(x)
        return oar.tanh(y) if y.sum() > 0 else oar.exp(y)

    results = []
    for call in (function, oar.jit.to_static(lambda x: recompute(function, x))):
        for value in (1.0, -1.0):
            call(oar.full([2, 3], value)).sum().backward()
        results.append(net.weight.grad.numpy().copy())
        net.clear_gradients()
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_static_programs_call_the_function():
    oar.enable_static()
    try:
        main, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(main, startup):
            x = oar.static.data("x", [2, 3])
            loss = recompute(lambda x: oar.static.nn.fc(x, 4, activation="tanh"), x).mean()
            oar.optimizer.SGD(0.1).minimize(loss)
        executor = oar.static.Executor()
        executor.run(startup)
        first, second = (float(executor.run(main, feed={"x": np.ones([2, 3], "float32")}, fetch_list=[loss])[0]) for _ in range(2))
        assert second < first
    finally:
        oar.disable_static()
