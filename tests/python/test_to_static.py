"""``to_static``: values and gradients of eager mode, sizes, arguments and results."""

import collections
import copy

import numpy as np
import pytest
from static_functions import captures, close, numbers, same, switched_on  # noqa: F401 - a fixture

import oar
from oar import nn
from oar.jit import capture_counts, to_static
from oar.static import InputSpec

Pair = collections.namedtuple("Pair", "left right")


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
    x = tensor()
    with pytest.warns(UserWarning, match=text):
        close(f(x), x * 2)
    close(f(numbers(7, 4)), numbers(7, 4) * 2)


@pytest.mark.parametrize("function", [
    lambda x: x.sum(),  # the gradient gets nothing but a number
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
    assert [op.name() for op in concrete.program.forward_program.global_block().ops] == ["pd_op.exp", "pd_op.sum"]
    assert "pd_op.multiply" in [op.name() for op in concrete.backward_program.global_block().ops]
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
