"""``to_static``: values and gradients of eager mode, captured again only where something has changed."""

import collections
import copy
import threading
import warnings

import numpy as np
import pytest

import oar
from oar import nn
from oar.jit import capture_counts, to_static
from oar.static import InputSpec

FACTOR = 2.0
TABLE = {"scale": [1.0, 2.0]}
Pair = collections.namedtuple("Pair", "left right")


@pytest.fixture(autouse=True)
def switched_on():
    yield
    oar.jit.enable_to_static(True)
    oar.jit.set_verbosity(0)


def captures(function):
    return capture_counts(function)["captures"]


def numbers(*shape, grad=False):
    t = oar.to_tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))
    t.stop_gradient = not grad
    return t


def same(a, b):
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def close(a, b, rtol=1e-5):
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=1e-6)


# values and gradients --------------------------------------------------------------------------


def test_a_function_gives_the_values_and_gradients_of_eager_mode():
    def f(x, y):
        return (x * y).tanh().sum(), x @ y.t()

    static = to_static(f)
    for _ in range(3):
        a, b = numbers(3, 4, grad=True), numbers(3, 4, grad=True)
        c, d = numbers(3, 4, grad=True), numbers(3, 4, grad=True)
        for got, wanted in zip(static(a, b), f(c, d)):
            close(got, wanted)
        static(a, b)[0].backward()
        f(c, d)[0].backward()
        close(a.grad, c.grad)
        close(b.grad, d.grad)
    assert captures(static) == 1
    assert capture_counts(static)["whole"] == 6


LAYERS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), lambda: numbers(4, 6)),
    "conv": (
        lambda: nn.Sequential(
            nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 2)
        ),
        lambda: numbers(2, 3, 6, 6),
    ),
    "lstm": (lambda: nn.LSTM(5, 7), lambda: numbers(2, 4, 5)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), lambda: numbers(2, 5, 8)),
    "embedding": (lambda: nn.Embedding(10, 4), lambda: oar.to_tensor([[1, 2], [9, 0]])),
}


def first(result):
    return result[0] if isinstance(result, (tuple, list)) else result


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_layers_as_in_eager_mode(name, training):
    make, data = LAYERS[name]
    eager = make()
    layer = copy.deepcopy(eager)
    static = to_static(layer)
    assert static is layer
    for net in (eager, static):
        net.train() if training else net.eval()
    x = data()
    for step in range(3):
        results = []
        for net in (eager, static):
            oar.seed(step)
            results.append(first(net(x)))
            results[-1].sum().backward()
        close(*results)
    for (key, p), q in zip(eager.named_parameters(), static.parameters()):
        if p.stop_gradient:
            continue
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)
    for a, b in zip(eager.buffers(), static.buffers()):
        close(a, b)
    assert capture_counts(static) == {"captures": 1, "whole": 3, "segments": 0, "eager": 0}


def test_second_derivatives():
    def f(x):
        return (x**3).sum()

    x, static = numbers(4, grad=True), to_static(f)
    (g,) = oar.grad(static(x), x, create_graph=True)
    (h,) = oar.grad(g.sum(), x)
    close(h, 6 * x)


def test_random_numbers_are_those_of_eager_mode():
    def f(x):
        return nn.functional.dropout(x, 0.5) + oar.rand([4]) * oar.randn(x.shape)

    static = to_static(f)
    x = numbers(4)
    for seed in (1, 2, 1):
        oar.seed(seed)
        wanted = [f(x), f(x)]
        oar.seed(seed)
        for w in wanted:
            same(static(x), w)
    assert captures(static) == 1


def test_inside_another_capture_and_under_transforms():
    @to_static
    def inner(x):
        return x * 2

    outer = to_static(lambda x: inner(x) + 1)
    close(outer(numbers(3)), numbers(3) * 2 + 1)
    close(oar.func.vmap(inner)(numbers(2, 3)), numbers(2, 3) * 2)


def test_modes_have_programs_of_their_own():
    net = to_static(nn.Linear(3, 2))
    x = numbers(4, 3)
    assert not net(x).stop_gradient
    with oar.no_grad():
        assert net(x).stop_gradient
    with oar.amp.auto_cast(dtype="bfloat16"):
        assert net(x).dtype == oar.bfloat16
    assert net(x).dtype == oar.float32
    assert captures(net) == 3


# sizes -----------------------------------------------------------------------------------------


def test_the_second_shape_opens_the_sizes_that_differ():
    @to_static
    def f(x, y):
        return x * 2 + y.sum()

    counts = []
    for rows in (3, 5, 7, 4):
        x = numbers(rows, 6)
        close(f(x, numbers(2)), x * 2 + numbers(2).sum())
        counts.append(captures(f))
    assert counts == [1, 2, 2, 2]
    assert "x_0" in str(f.main_program)
    f(numbers(4, 6), numbers(3))
    assert captures(f) == 3


def test_sizes_0_and_1_are_captured_for_themselves():
    f = to_static(lambda x: x + oar.ones([3, 1]))
    for rows in (3, 1, 3, 1):
        close(f(numbers(rows, 2)), numbers(rows, 2) + oar.ones([3, 1]))
    assert captures(f) == 2
    assert f(oar.zeros([3, 0])).shape == [3, 0]


def test_sizes_that_were_assumed_equal_may_come_apart():
    def f(x, y):
        return x + y if x.shape[0] == y.shape[0] else x.sum() + y.sum()

    static = to_static(f)
    for a, b in ((3, 3), (4, 4), (5, 5), (5, 6), (6, 7), (8, 8)):
        close(static(numbers(a), numbers(b)), f(numbers(a), numbers(b)))
    assert captures(static) == 3


def test_a_function_that_needs_its_sizes_as_numbers():
    def f(x):
        return x * float(x.shape[0]) ** 0.5

    static = to_static(f)
    for rows in (2, 3, 4, 3, 2):
        close(static(numbers(rows)), f(numbers(rows)))
    assert capture_counts(static) == {"captures": 3, "whole": 5, "segments": 0, "eager": 0}


def test_input_spec_opens_sizes_from_the_start():
    f = to_static(lambda x, y: x * y, input_spec=[InputSpec(["batch", None]), InputSpec(["batch", 1])])
    for rows in (3, 5, 8):
        close(f(numbers(rows, rows + 1), numbers(rows, 1)), numbers(rows, rows + 1) * numbers(rows, 1))
    assert captures(f) == 1


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (lambda: numbers(3, 5), r"argument 'x' should be InputSpec\(shape=\(None, 4\).*shape \[3, 5\].*axis 1 is 5"),
        (lambda: numbers(3), "the ranks are 2 and 1"),
        (lambda: numbers(3, 4).astype("float64"), "the dtypes differ"),
    ],
)
def test_a_tensor_that_contradicts_its_spec(tensor, text):
    f = to_static(lambda x: x * 2, input_spec=[InputSpec([None, 4], name="x")])
    with pytest.raises(ValueError, match=text):
        f(tensor())


@pytest.mark.parametrize("function", [
    lambda x: x.sum(),  # the gradient is told nothing but a number
    lambda x: oar.concat([x, x + 1], axis=1),  # ... a size that is a multiple
    lambda x: oar.prod(x, axis=0),
    lambda x: oar.split(x, 2, axis=1)[0],
    lambda x: oar.expand(x.sum(axis=0), [4, x.shape[1]]),
])
def test_open_sizes_that_no_cotangent_tells(function):
    static = to_static(function, input_spec=[InputSpec([None, None])])
    for shape in ([3, 4], [5, 6], [3, 4]):
        x = oar.rand(shape)
        x.stop_gradient = False
        other = x.detach()
        other.stop_gradient = False
        y, expected = static(x), function(other)
        np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)
        weight = oar.rand(expected.shape)
        (y * weight).sum().backward()
        (expected * weight).sum().backward()
        assert x.grad.shape == shape
        np.testing.assert_allclose(x.grad.numpy(), other.grad.numpy(), rtol=1e-5)
    assert static.concrete_program.backward_program.verify() == []


def test_train_and_eval_of_a_function():
    static = to_static(lambda x: x * x)
    x = oar.to_tensor([3.0], stop_gradient=False)
    static.eval()
    assert static(x).stop_gradient
    static.train()
    static(x).backward()
    assert x.grad.tolist() == [6.0]
    net = nn.Linear(2, 2)
    net.forward = to_static(net.forward)
    with pytest.raises(RuntimeError, match="method of a Layer"):
        net.forward.eval()


def test_the_program_of_a_call():
    static = to_static(lambda x: oar.exp(x).sum())
    x = oar.to_tensor([3.0, 1.0], stop_gradient=False)
    concrete = static.get_concrete_program(x)[-1]
    assert [op.name() for op in concrete.program.forward_program.global_block().ops] == ["exp", "sum"]
    assert "multiply" in [op.name() for op in concrete.backward_program.global_block().ops]
    before = static(x).item()
    assert static.get_concrete_program(x)[0].main_program.op_names == ["exp", "sum"]
    assert before == pytest.approx(np.exp(3.0) + np.exp(1.0), rel=1e-6)
    with pytest.raises(RuntimeError, match="no program"):
        to_static(lambda x: float(x.numpy()[0])).get_concrete_program(x)


def test_a_program_from_the_spec_alone():
    net = to_static(nn.Linear(4, 2), input_spec=[InputSpec([None, 4])])
    assert "linear" in str(net.forward.main_program) or "matmul" in str(net.forward.main_program)
    assert captures(net) == 1


# arguments and results -------------------------------------------------------------------------


def test_nested_arguments_and_results():
    def f(batch, pair, *more, scale=1.0, name=None):
        total = batch["a"] + batch["b"][0] + pair.left * pair.right + sum(more)
        return {"total": total * scale, "pair": Pair(total, "text"), "list": [None, (total + 1, 3)]}

    static = to_static(f)
    x = numbers(3)
    arguments = ({"a": x, "b": [x * 2]}, Pair(x, np.ones(3, "float32")), x, x)
    wanted = f({"a": x, "b": [x * 2]}, Pair(x, oar.ones([3])), x, x, scale=2.0)
    for _ in range(2):
        got = static(*arguments, scale=2.0)
        close(got["total"], wanted["total"])
        assert isinstance(got["pair"], Pair) and got["pair"].right == "text"
        assert got["list"][0] is None and got["list"][1][1] == 3
        close(got["list"][1][0], wanted["list"][1][0])
    assert captures(static) == 1
    static(*arguments, scale=3.0)
    assert captures(static) == 2
    static(*arguments, scale=2.0, name="other")
    assert captures(static) == 3


def test_numbers_differ_by_type():
    f = to_static(lambda x, n: x * n)
    assert f(oar.to_tensor([1, 2]), 2).dtype == oar.int64
    assert f(oar.to_tensor([1, 2]), 2.0).dtype == oar.float32


def test_an_input_that_is_returned_is_itself():
    f = to_static(lambda x: (x, x * 2))
    x = numbers(3)
    assert f(x)[0] is x and f(x)[0] is x


def test_no_tensors_at_all():
    f = to_static(lambda: oar.ones([2]) * 3)
    a, b = f(), f()
    same(a, b)
    a.add_(oar.ones([2]))
    assert b.numpy().tolist() == f().numpy().tolist() == [3, 3]


# guards ----------------------------------------------------------------------------------------


def test_a_global_that_changes(monkeypatch):
    f = to_static(lambda x: x * FACTOR + TABLE["scale"][0])
    x = numbers(3)
    close(f(x), x * 2 + 1)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    close(f(x), x * 5 + 1)
    monkeypatch.setitem(TABLE, "scale", [7.0, 2.0])
    close(f(x), x * 5 + 7)
    TABLE["scale"][0] = 8.0
    close(f(x), x * 5 + 8)
    close(f(x), x * 5 + 8)
    assert captures(f) == 4


def test_variables_of_enclosing_functions():
    factor, shifts = 2.0, [1.0]

    def shift(x):
        return x + shifts[0]

    f = to_static(lambda x: shift(x * factor))
    x = numbers(3)
    close(f(x), x * 2 + 1)
    factor = 3.0
    close(f(x), x * 3 + 1)
    shifts[0] = 4.0
    close(f(x), x * 3 + 4)
    assert captures(f) == 3


class Config:
    depth = 1

    def __init__(self):
        self.scale = 2.0


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.linear = nn.Linear(3, 3)
        self.flip = False
        self.parts = [Config(), Config()]

    def forward(self, x):
        y = self.linear(x) * self.config.scale
        for part in self.parts:
            y = y * part.scale
        for _ in range(self.config.depth):
            y = y + 1
        return -y if self.flip else y


def test_attributes_that_change():
    net = to_static(Net())
    x = numbers(2, 3)

    def check(count):
        close(net(x), Net.forward(net, x))
        close(net(x), Net.forward(net, x))
        assert captures(net) == count

    check(1)
    net.config.scale = 3.0
    check(2)
    net.flip = True
    check(3)
    net.parts[1].scale = 0.5
    check(4)
    net.parts.append(Config())
    check(5)
    Config.depth = 2
    try:
        check(6)
    finally:
        Config.depth = 1
    check(6)  # as it was
    net.linear.weight = net.create_parameter([3, 3])
    check(7)
    net.linear.bias.set_value(oar.ones([3]))
    check(7)  # contents are read at every run
    hook = net.linear.register_forward_post_hook(lambda layer, inputs, outputs: outputs * 2)
    check(8)
    hook.remove()
    check(8)


def test_the_training_flag():
    net = to_static(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))
    x = numbers(4, 3)
    net.train()
    net(x)
    net.eval()
    same(net(x), net(x))
    net.train()
    net(x)
    assert captures(net) == 2


def test_freezing_a_parameter():
    net = to_static(nn.Linear(3, 2))
    x = numbers(4, 3)
    net(x).sum().backward()
    net.weight.stop_gradient = True
    net.clear_gradients()
    net.weight.clear_gradient(False)
    net(x).sum().backward()
    assert net.weight.grad is None and net.bias.grad is not None
    assert captures(net) == 2


def test_tensors_and_arrays_outside():
    mask, table = oar.ones([3]), np.ones(3, "float32")
    f = to_static(lambda x: x * mask + oar.to_tensor(table))
    x = numbers(3)
    close(f(x), x + 1)
    mask.add_(oar.ones([3]))  # read at every run
    close(f(x), x * 2 + 1)
    assert captures(f) == 1
    table[0] = 5
    close(f(x), x * 2 + oar.to_tensor(table))
    assert captures(f) == 2


def test_the_content_of_a_tensor_that_python_looks_at():
    steps = oar.to_tensor([2])
    f = to_static(lambda x: x * int(steps))
    x = numbers(3)
    close(f(x), x * 2)
    steps.add_(oar.to_tensor([1]))
    close(f(x), x * 3)
    close(f(x), x * 3)
    assert capture_counts(f) == {"captures": 2, "whole": 3, "segments": 0, "eager": 0}


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


# forms of use ----------------------------------------------------------------------------------


class Box:
    def __init__(self, factor):
        self.factor = factor

    @to_static
    def scale(self, x):
        return x * self.factor


def test_methods_have_programs_per_instance():
    a, b = Box(2.0), Box(3.0)
    for _ in range(2):
        close(a.scale(numbers(3)), numbers(3) * 2)
        close(b.scale(numbers(3)), numbers(3) * 3)
    assert captures(a.scale) == captures(b.scale) == 1
    bound = to_static(a.scale.dygraph_function)
    close(bound(numbers(3)), numbers(3) * 2)


def test_switches_and_attributes():
    @to_static(full_graph=True, backend="CINN")
    def f(x):
        """A sum."""
        return x + 1

    assert f.__name__ == "f" and f.__doc__ == "A sum."
    assert "return x + 1" in f.code
    oar.jit.enable_to_static(False)
    f(numbers(3))
    assert captures(f) == 0
    oar.jit.enable_to_static(True)
    f(numbers(3))
    assert captures(f) == 1
    assert "add" in str(f.concrete_program.main_program)
    close(f.rollback()(numbers(3)), numbers(3) + 1)
    left = to_static(oar.jit.not_to_static(lambda x: x * 2))
    close(left(numbers(3)), numbers(3) * 2)
    assert captures(left) == 0
    with pytest.raises(ValueError, match="should be 'CINN' or None"):
        to_static(f, backend="other")
    with pytest.raises(TypeError, match="takes a bool"):
        oar.jit.enable_to_static(1)


def test_rollback_of_a_layer():
    net = to_static(nn.Linear(3, 2))
    net.forward.rollback()
    net(numbers(2, 3))
    assert not isinstance(net.forward, oar.jit.StaticFunction)


def test_a_copy_of_a_layer_has_its_own_programs():
    net = to_static(nn.Linear(3, 2))
    net(numbers(2, 3))
    other = copy.deepcopy(net)
    with oar.no_grad():
        other.weight.set_value(other.weight * 2)
    close(other(numbers(2, 3)), nn.functional.linear(numbers(2, 3), other.weight, other.bias))
    assert captures(net) == 1


def test_threads():
    net = to_static(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    problems = []

    def work(rows):
        try:
            for _ in range(20):
                x = numbers(rows, 4)
                close(net(x), net[2](net[1](net[0](x))))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (2, 3, 4, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    assert capture_counts(net)["whole"] == 80
    assert captures(net) <= 3


def test_the_cache_is_bounded():
    f = to_static(lambda x, n: x * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(40):
            f(numbers(3), n)
    assert sum(len(family.variants) for family in f._families.values()) == 32
    assert len([w for w in caught if "has been captured" in str(w.message)]) == 1
    f(numbers(3), 39)
    assert captures(f) == 40
    f(numbers(3), 0)
    assert captures(f) == 41


def test_a_limit_for_the_backward_half_changes_no_bit():
    oar.seed(3)
    x, w, v = oar.randn([128, 16]), oar.randn([16, 4096]), oar.randn([4096, 2])
    w.stop_gradient = v.stop_gradient = False

    def net(x):
        return oar.sum(oar.nn.functional.gelu(x @ w) @ v)

    found = []
    for limit in (0, 1):
        before = oar.get_flags("backward_memory_mb")
        oar.set_flags({"backward_memory_mb": limit})
        try:
            static = oar.jit.to_static(net)
            static(x).backward()
        finally:
            oar.set_flags(before)
        found.append((w.grad.numpy(), v.grad.numpy(), str(static.concrete_program.backward_program)))
        w.clear_grad()
        v.clear_grad()
    for a, b in zip(found[0][:2], found[1][:2]):
        np.testing.assert_array_equal(a, b)
    assert "gelu(" not in found[0][2] and "gelu(" in found[1][2]


def test_hooks_on_inputs_are_part_of_the_program():
    def doubled(x):
        total = (x + 4) ** 2
        x.register_hook(lambda g: 2 * g)
        x.register_hook(lambda g: g + 1)
        return total

    eager, captured = oar.to_tensor([2.0], stop_gradient=False), oar.to_tensor([2.0], stop_gradient=False)
    doubled(eager).backward()
    oar.jit.to_static(doubled)(captured).backward()
    assert eager.grad.tolist() == captured.grad.tolist() == [25.0]
