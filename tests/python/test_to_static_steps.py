"""``to_static``: training steps as one program, and functions that fall back to segments."""


import numpy as np
import pytest
from static_functions import captures, close, numbers, same, switched_on  # noqa: F401 - a fixture

import oar
from oar import nn
from oar.jit import capture_counts, to_static

FACTOR = 2.0


# training --------------------------------------------------------------------------------------


def trained(static, order="last", batches=(4, 4, 4, 4, 4)):
    oar.seed(7)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1D(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    rate = oar.optimizer.lr.ExponentialDecay(0.1, 0.5)
    clip = nn.ClipGradByGlobalNorm(0.5)
    optimizer = oar.optimizer.AdamW(rate, parameters=net.parameters(), grad_clip=clip, weight_decay=0.1)

    def step(x, label):
        if order == "first":
            optimizer.clear_grad()
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        optimizer.step()
        if order == "last":
            optimizer.clear_grad()
        rate.step()
        return loss

    function = to_static(step) if static else step
    losses = []
    for i, rows in enumerate(batches):
        oar.seed(i)
        losses.append(function(numbers(rows, 6), oar.to_tensor([0, 1, 2, 0, 1, 2][:rows])).item())
    return losses, net, rate.last_lr, optimizer, function


def test_a_step_updates_weights_and_moments_where_they_are():
    rows = 512
    net = nn.Linear(rows, rows)
    optimizer = oar.optimizer.AdamW(1e-3, parameters=net.parameters())

    @to_static
    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    x = numbers(4, rows)
    before = oar._C.memory_stats()["allocated"]
    for _ in range(3):
        step(x)
    grown = oar._C.memory_stats()["allocated"] - before
    weight = 4 * rows * rows
    assert 2 * weight < grown < 4.5 * weight, "two moments and a gradient, but no second copy of weight and moments"


@pytest.mark.parametrize("order", ["last", "first", "never"])
def test_a_whole_training_step(order):
    wanted, net, rate, _, _ = trained(False, order)
    got, static_net, static_rate, _, step = trained(True, order)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    for p, q in zip(net.state_dict().values(), static_net.state_dict().values()):
        close(p, q, rtol=1e-4)
    if order != "last":
        for p, q in zip(net.parameters(), static_net.parameters()):
            assert p.stop_gradient or close(p.grad, q.grad, rtol=1e-4) is None
    assert rate == static_rate == pytest.approx(0.1 * 0.5**5)
    counts = capture_counts(step)
    assert counts["segments"] == counts["eager"] == 0 and counts["whole"] == 5
    assert counts["captures"] == (1 if order == "last" else 2)


def test_hooks_of_parameters_act_once():
    net = to_static(nn.Linear(3, 2))
    net.weight.register_hook(lambda g: g * 2)
    net(numbers(4, 3)).sum().backward()
    plain = nn.Linear(3, 2)
    plain(numbers(4, 3)).sum().backward()
    close(net.weight.grad, plain.weight.grad * 2)
    assert captures(net) == 1


def test_master_weights_made_by_a_captured_step():
    def losses(static):
        oar.seed(3)
        net = nn.Linear(4, 4)
        net.bfloat16()
        optimizer = oar.optimizer.AdamW(0.1, parameters=net.parameters(), multi_precision=True)

        def step(x):
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        function = to_static(step) if static else step
        made = [float(function(numbers(4, 4).astype("bfloat16"))) for _ in range(3)]
        counts = capture_counts(function) if static else {"segments": 0, "eager": 0}
        assert counts["segments"] == counts["eager"] == 0
        return made, optimizer.state_dict()["master_weights"]

    (wanted, masters), (got, static_masters) = losses(False), losses(True)
    np.testing.assert_allclose(got, wanted, rtol=1e-2)
    for a, b in zip(masters.values(), static_masters.values()):
        close(a, b, rtol=1e-3)


def test_training_with_batches_of_several_sizes():
    batches = (4, 6, 5, 3, 6)
    wanted = trained(False, batches=batches)[0]
    got, *_, step = trained(True, batches=batches)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert captures(step) == 2


def test_a_rate_set_by_hand_is_seen():
    w = oar.create_parameter([2], "float32", default_initializer=nn.initializer.Constant(0.0))
    optimizer = oar.optimizer.SGD(1.0, parameters=[w])

    @to_static
    def step(x):
        (w * x).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    for rate in (1.0, 0.5, 0.25):
        optimizer.set_lr(rate)
        step(oar.ones([2]))
    assert w.numpy().tolist() == [-1.75, -1.75]
    assert captures(step) == 1


# falling back ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.sum().item(),
        lambda x: oar.to_tensor(x.numpy() * 2),
        lambda x: x[: int((x > -9).sum())],
        lambda x: x * np.random.rand(),
    ],
    ids=["item", "numpy", "int", "random"],
)
def test_what_needs_values_runs_as_python(function):
    static = to_static(function)
    for _ in range(3):
        np.random.seed(3)
        got = static(numbers(3))
        np.random.seed(3)
        close(got, function(numbers(3)))
    assert capture_counts(static) == {"captures": 0, "whole": 0, "segments": 3, "eager": 0}


def test_an_error_that_is_caught_does_not_hide_a_value():
    def f(x):
        try:
            return x * x.sum().item()
        except RuntimeError:
            return x

    close(to_static(f)(numbers(3)), f(numbers(3)))


def test_writes_to_an_argument_reach_the_caller():
    @to_static
    def f(x):
        x.add_(oar.ones([3]))
        return x * 1

    x = oar.zeros([3])
    close(f(x), oar.ones([3]))
    assert x.numpy().tolist() == [1, 1, 1]
    assert capture_counts(f)["segments"] == 1


class Counting(nn.Layer):
    def __init__(self):
        super().__init__()
        self.calls, self.seen, self.last = 0, [], None

    def forward(self, x):
        self.calls += 1
        self.seen.append(self.calls)
        return x * self.calls


def test_state_in_python_changes_once_per_call():
    net = to_static(Counting())
    for i in range(1, 4):
        close(net(numbers(3)), numbers(3) * i)
    assert net.calls == 3 and net.seen == [1, 2, 3]
    assert capture_counts(net)["segments"] == 3


def test_a_tensor_that_is_kept():
    class Keeping(nn.Layer):
        def forward(self, x):
            self.last = x * 2
            return x + 1

    net = to_static(Keeping())
    net(numbers(3))
    close(net.last, numbers(3) * 2)


def test_a_buffer_that_is_replaced():
    class Mean(nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", oar.zeros([3]))

        def forward(self, x):
            self.mean = self.mean * 0.5 + x * 0.5
            return x - self.mean

    eager, net = Mean(), to_static(Mean())
    for i in range(3):
        close(net(numbers(3) * i), eager(numbers(3) * i))
        close(net.mean, eager.mean)
    assert capture_counts(net) == {"captures": 1, "whole": 3, "segments": 0, "eager": 0}


def test_what_is_made_on_the_first_call():
    class Lazy(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = None

        def forward(self, x):
            if self.table is None:
                self.table = oar.arange(3, dtype="float32")
            return x + self.table

    net = to_static(Lazy())
    for _ in range(2):
        close(net(numbers(3)), numbers(3) + oar.arange(3, dtype="float32"))
    assert capture_counts(net)["segments"] == capture_counts(net)["eager"] == 0


def test_errors_are_those_of_eager_mode():
    f = to_static(lambda x, y: x + y)
    with pytest.raises(ValueError, match="do not broadcast"):
        f(numbers(3), numbers(4))
    close(f(numbers(3), numbers(3)), numbers(3) * 2)

    @to_static
    def g(x):
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        g(numbers(3))


def test_trace_names_reasons(capfd):
    oar.jit.set_verbosity(1)

    @to_static
    def f(x, n):
        return x * x.sum().item() if n else x * FACTOR

    f(numbers(3), 0)
    f(numbers(5), 0)
    f(numbers(5), 1)
    text = capfd.readouterr().err
    assert "f: captured\n" in text
    assert "size 0 of x is 5, and was 3; open: x_0" in text
    assert "f: runs as Python: RuntimeError: the value of" in text
    assert "return x * x.sum().item()" in text


def test_fall_back_is_an_error_where_captures_are_tested(monkeypatch):
    monkeypatch.setenv("OAR_TEST_MODE", "captured")
    f = to_static(lambda x: x * x.sum().item())
    with pytest.raises(RuntimeError, match="was not captured: RuntimeError: the value of"):
        f(numbers(3))
