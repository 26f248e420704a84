"""cond, case, switch_case, while_loop and scan: eagerly, in programs, under to_static."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import oar
from oar import nn
from oar.static import InputSpec
from oar.static.nn import case, cond, switch_case, while_loop
from oar.static.nn.control_flow import scan


def program(function, *inputs):
    return oar.jit.capture(function, [InputSpec.from_tensor(t) for t in inputs])


def tensor(values, dtype="float64"):
    return oar.to_tensor(values, dtype=dtype)


def test_cond_goes_both_ways():
    def f(x):
        return cond(x.sum() > 0, lambda: x * 2, lambda: -x)

    p = program(f, tensor([1.0, 2.0]))
    assert not p.verify()
    assert "switch_case" in p.op_names
    for values in ([1.0, 2.0], [-1.0, -2.0]):
        np.testing.assert_array_equal(p(tensor(values)).numpy(), f(tensor(values)).numpy())


def test_nested_structures_and_numbers():
    def f(x):
        return cond(
            x.sum() > 0,
            lambda: {"a": [x, x + 1], "n": 3, "m": 1.5, "s": "same", "none": None},
            lambda: {"a": [x * x, x], "n": 3, "m": 2.5, "s": "same", "none": None},
        )

    found = []

    def captured(x):
        found.append(f(x))
        return [*found[-1]["a"], found[-1]["m"]]

    p = program(captured, tensor([1.0]))
    assert found[0]["n"] == 3 and found[0]["s"] == "same" and found[0]["none"] is None
    for value in (2.0, -2.0):
        a, b, m = p(tensor([value]))
        eager = f(tensor([value]))
        assert [a.item(), b.item()] == [t.item() for t in eager["a"]]
        assert m.item() == eager["m"]


def test_branches_may_be_missing():
    x = tensor([1.0])
    assert cond(x.sum() > 0, None, None) is None
    assert cond(x.sum() < 0, lambda: x) is None
    seen = oar.zeros([1], dtype="float64")

    def write():
        seen.add_(oar.ones([1], dtype="float64"))

    def f(x):
        assert cond(x.sum() > 0, write) is None
        return seen + 0

    p = program(f, x)
    assert p(tensor([1.0])).item() == 1 and p(tensor([-1.0])).item() == 1 and p(tensor([3.0])).item() == 2
    assert seen.item() == 2


def test_mistakes():
    x = tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="pred must be a Tensor"):
        cond(True, lambda: x)
    with pytest.raises(ValueError, match="one element"):
        cond(x > 0, lambda: x)
    with pytest.raises(TypeError, match="true_fn must be callable"):
        cond(x.sum() > 0, 3)
    with pytest.raises(ValueError, match="loop_vars is empty"):
        while_loop(lambda: None, lambda: None, [])

    def raises(error, match, f):
        with pytest.raises(error, match=match):
            program(f, x)

    raises(ValueError, "a tensor and None|None and a tensor", lambda x: cond(x.sum() > 0, lambda: x))
    raises(ValueError, "1 and 2|2 and 1", lambda x: cond(x.sum() > 0, lambda: [x], lambda: [x, x]))
    raises(ValueError, "float64.*float32|float32.*float64",
           lambda x: cond(x.sum() > 0, lambda: x, lambda: x.astype("float32")))
    raises(ValueError, "float64.2, 1. in one branch and float64.2",
           lambda x: cond(x.sum() > 0, lambda: x, lambda: x.unsqueeze(1)))
    raises(ValueError, "keep their dtype and number of axes",
           lambda x: while_loop(lambda v: v.sum() < 9, lambda v: [oar.stack([v, v])], [x]))
    raises(ValueError, "keep their dtype and number of axes",
           lambda x: while_loop(lambda v: v.sum() < 9, lambda v: [v.astype("float32")], [x]))
    raises(ValueError, "is a tensor and becomes None",
           lambda x: while_loop(lambda v: v.sum() < 9, lambda v: [None], [x]))
    raises(TypeError, "the result of cond must have one element", lambda x: while_loop(lambda v: v < 9, lambda v: [v], [x]))
    raises(ValueError, "2 values for 1", lambda x: while_loop(lambda v: v.sum() < 9, lambda v: [v, v], [x]))


def test_case_and_switch_case():
    def f(x, i):
        a = case([(x.sum() > 10, lambda: x), (x.sum() > 0, lambda: x * 2)], lambda: x * 3)
        b = switch_case(i, {1: lambda: x + 1, 4: lambda: x + 4}, lambda: x - 1)
        c = switch_case(i, [lambda: x, lambda: x * 5])
        return a, b, c

    p = program(f, tensor([1.0]), oar.to_tensor(1))
    for value in (20.0, 5.0, -5.0):
        for index in (-1, 0, 1, 2, 4):
            got = [t.item() for t in p(tensor([value]), oar.to_tensor(index))]
            assert got == [t.item() for t in f(tensor([value]), oar.to_tensor(index))], (value, index)


def newton(a):
    def test(x, i):
        return oar.logical_and((x * x - a).abs().max() > 1e-9, (i < 50).all())

    return while_loop(test, lambda x, i: [(x + a / x) / 2, i + 1], [a, oar.zeros([], dtype="int64")])


def test_while_loop():
    p = program(lambda a: newton(a), tensor([2.0, 9.0]))
    assert not p.verify()
    for values in ([2.0, 9.0], [1.0, 1.0], [100.0, 3.0]):
        root, rounds = p(tensor(values))
        eager_root, eager_rounds = newton(tensor(values))
        np.testing.assert_allclose(root.numpy(), np.sqrt(values), rtol=1e-12)
        np.testing.assert_array_equal(root.numpy(), eager_root.numpy())
        assert rounds.item() == eager_rounds.item()


def rnn(w, h, xs):
    def step(h, x):
        h = oar.tanh(x @ w + h)
        return h, h.sum()

    return scan(step, h, xs)


def scalar_functions():
    xs = oar.randn([4, 2, 3], dtype="float64")

    def by_cond(w):
        return cond(w.sum() > 0, lambda: (w * w * w).sum(), lambda: oar.exp(w).sum())

    def by_while(w):
        total, _ = while_loop(
            lambda t, i: i < 4,
            lambda t, i: [t * w + oar.sin(t), i + 1],
            [w, oar.zeros([], dtype="int64")],
        )
        return total.sum()

    def by_scan(w):
        h, sums = rnn(w, oar.zeros([2, 3], dtype="float64"), xs)
        return (h * h).sum() + (sums * sums).sum()

    return [(by_cond, [3]), (by_while, [3]), (by_scan, [3, 3])]


@pytest.mark.parametrize("which", range(3))
def test_gradients_against_differences(which):
    f, shape = scalar_functions()[which]
    for sign in (1.0, -1.0):
        w = (oar.rand(shape, dtype="float64") * 0.5 + 0.3) * sign
        direction = oar.randn(shape, dtype="float64")
        static = oar.jit.to_static(f)

        def gradient(at, through):
            at = at.detach()
            at.stop_gradient = False
            (g,) = oar.grad(through(at), [at])
            return g

        def second(at):
            at = at.detach()
            at.stop_gradient = False
            (g,) = oar.grad(static(at), [at], create_graph=True)
            (h,) = oar.grad((g * direction).sum(), [at])
            return h

        step = 1e-5
        first = (f(w + direction * step) - f(w - direction * step)).item() / (2 * step)
        assert (gradient(w, static) * direction).sum().item() == pytest.approx(first, rel=1e-6, abs=1e-8)
        wanted = (gradient(w + direction * step, f) - gradient(w - direction * step, f)) / (2 * step)
        np.testing.assert_allclose(second(w).numpy(), wanted.numpy(), rtol=1e-5, atol=1e-7)
    assert oar.jit.capture_counts(static)["eager"] == 0


def test_scan_captured_is_eager():
    oar.seed(1)
    w, h, xs = oar.randn([3, 3]), oar.randn([2, 3]), oar.randn([5, 2, 3])
    p = program(lambda *a: rnn(*a), w, h, xs)
    for got, wanted in zip(p(w, h, xs), rnn(w, h, xs)):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-6)
    back = program(lambda a: scan(lambda c, r: (c + r, c), a[0] * 0, a, reverse=True)[1], xs)
    wanted = scan(lambda c, r: (c + r, c), xs[0] * 0, xs, reverse=True)[1]
    np.testing.assert_allclose(back(xs).numpy(), wanted.numpy(), rtol=1e-6)


def test_to_static_keeps_a_branch_whole():
    net = nn.Linear(3, 2)

    @oar.jit.to_static
    def f(x):
        return cond(x.mean() > 0, lambda: net(x).sum(), lambda: (net(x) * net(x)).sum())

    for shift in (3.0, -3.0, 3.0):
        x = oar.randn([4, 3]) + shift
        f(x).backward()
        got = [p.grad.numpy().copy() for p in net.parameters()]
        net.clear_gradients()
        f.dygraph_function(x).backward()
        for g, p in zip(got, net.parameters()):
            np.testing.assert_allclose(g, p.grad.numpy(), rtol=1e-5, atol=1e-5)
        net.clear_gradients()
    assert oar.jit.capture_counts(f)["captures"] == 1


def test_an_update_in_a_branch():
    """A step that is left out where the loss is not finite."""
    results = []
    for static in (True, False):
        oar.seed(3)
        net = nn.Linear(2, 1)
        optimizer = oar.optimizer.Adam(0.1, parameters=net.parameters())

        def train(x):
            loss = (net(x) ** 2).mean()
            loss.backward()
            cond(oar.isfinite(loss), lambda: optimizer.step(), None)
            optimizer.clear_grad()
            return loss

        step = oar.jit.to_static(train) if static else train
        for value in (1.0, float("inf"), 2.0):
            step(oar.full([4, 2], value))
        results.append([p.numpy() for p in net.parameters()])
        if static:
            assert oar.jit.capture_counts(step)["eager"] == 0
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_batch_norm_statistics_in_a_branch():
    results = []
    for static in (True, False):
        oar.seed(5)
        norm = nn.BatchNorm1D(3)

        def f(x):
            return cond(x.sum() > 0, lambda: norm(x), lambda: x * 1.0)

        run = oar.jit.to_static(f) if static else f
        oar.seed(6)
        for shift in (4.0, -4.0, 4.0):
            out = run(oar.randn([8, 3]) + shift)
        results.append([norm._mean.numpy(), norm._variance.numpy(), out.numpy()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_random_numbers_keep_their_stream():
    def f(x):
        return cond(x.sum() > 0, lambda: x + oar.rand([2]), lambda: x) + oar.rand([2])

    p = program(f, oar.ones([2]))
    for value in (1.0, -1.0):
        oar.seed(11)
        got = p(oar.full([2], value)).numpy()
        oar.seed(11)
        np.testing.assert_array_equal(got, f(oar.full([2], value)).numpy())


def noisy(net):
    def f(x):
        y = cond(x.sum() > 0, lambda: nn.functional.dropout(net(x), 0.5) + oar.rand([2, 4]), lambda: net(x))

        def body(y, i):
            inner = cond((i > 0).all(), lambda: nn.functional.dropout(y, 0.2), lambda: y * oar.rand([4]))
            return [nn.functional.dropout(net(inner) + y, 0.3), i + 1]

        z, _ = while_loop(lambda y, i: i < 3, body, [y, oar.zeros([], dtype="int64")])
        h, rows = scan(lambda h, r: (h * oar.rand([4]) + r, h.sum()), z[0], z)
        return (h * h).sum() + rows.sum() + (z * z).sum()

    return f


def test_the_numbers_of_backward_are_those_of_forward():
    net = nn.Linear(4, 4)
    f = noisy(net)
    static = oar.jit.to_static(f)
    for sign in (1.0, -1.0):
        found = []
        for run in (static, f):
            oar.seed(7)
            x = oar.full([2, 4], sign)
            x.stop_gradient = False
            loss = run(x)
            between = oar.rand([2])
            loss.backward()
            found.append([loss, between, oar.rand([2]), x.grad, *(p.grad for p in net.parameters())])
            net.clear_gradients()
        for a, b in zip(*found):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        assert np.abs(found[0][3].numpy()).max() > 0
    assert oar.jit.capture_counts(static) == {"captures": 1, "whole": 2, "segments": 0, "eager": 0}


def test_random_regions_in_forward_mode():
    net = nn.Linear(4, 4)
    f = noisy(net)
    x, d = oar.ones([2, 4]), oar.randn([2, 4])
    p = program(f, x)
    oar.seed(3)
    value, tangent = oar.func.jvp(lambda v: p(v), (x,), (d,))
    oar.seed(3)
    eager_value, eager_tangent = oar.func.jvp(f, (x,), (d,))
    np.testing.assert_allclose(oar.to_tensor(value).numpy(), oar.to_tensor(eager_value).numpy(), rtol=1e-5)
    np.testing.assert_allclose(oar.to_tensor(tangent).numpy(), oar.to_tensor(eager_tangent).numpy(), rtol=1e-5)


def test_branches_of_different_sizes():
    def f(x, i):
        y = switch_case(i, [lambda: oar.concat([x, x * x]), lambda: x[:1] * 3, lambda: x[x > 1] * 5])
        return (y * y).sum() + y.mean()

    static = oar.jit.to_static(f)
    for index in (0, 1, 2):
        gradients = []
        for run in (static, f):
            x = tensor([0.5, 2.0, 3.0])
            x.stop_gradient = False
            (g,) = oar.grad(run(x, oar.to_tensor(index)), [x])
            gradients.append(g.numpy())
        np.testing.assert_allclose(*gradients)
    assert oar.jit.capture_counts(static)["whole"] == 3
    p = program(lambda x: cond(x.sum() > 0, lambda: oar.concat([x, x]), lambda: x), tensor([1.0, 2.0]))
    assert p(tensor([1.0, 2.0])).tolist() == [1, 2, 1, 2] and p(tensor([-1.0, -2.0])).tolist() == [-1, -2]


def test_a_variable_that_grows():
    def f(x, n):
        def body(rows, i):
            return [oar.concat([rows, oar.tanh(rows[-1:] * x + rows.mean(0, keepdim=True))]), i + 1]

        rows, i = while_loop(lambda rows, i: i < n, body, [x.unsqueeze(0), oar.zeros([], dtype="int64")])
        return (rows * rows).sum()

    static = oar.jit.to_static(f)
    for rounds in (0, 1, 4):
        gradients = []
        for run in (static, f):
            x = tensor([0.5, -0.3])
            x.stop_gradient = False
            (g,) = oar.grad(run(x, oar.to_tensor(rounds)), [x])
            gradients.append(g.numpy())
        np.testing.assert_allclose(*gradients, rtol=1e-12)
    assert oar.jit.capture_counts(static) == {"captures": 1, "whole": 3, "segments": 0, "eager": 0}


def test_a_variable_that_grows_along_two_axes():
    def f(x):
        (y,) = while_loop(lambda v: v.sum() < 20, lambda v: [oar.tile(v, [2, 2])], [x])
        return y

    p = program(f, tensor([[1.0]]))
    assert p(tensor([[1.0]])).shape == [8, 8]
    spec = InputSpec([1, 1], "float64", stop_gradient=False)
    assert oar.jit.capture(f, [spec])(tensor([[1.0]])).shape == [8, 8]
    with pytest.raises(NotImplementedError, match="along 2 axes"):
        oar.jit.capture(lambda x: oar.grad(f(x).sum(), [x])[0], [spec])


class Twice(oar.autograd.PyLayer):
    """Its derivative is not that of what it computes, so that a test sees which one was taken."""

    @staticmethod
    def forward(ctx, x, y):
        z = x * y
        ctx.save_for_backward(x, z)
        return z, x.sum() > 0

    @staticmethod
    def backward(ctx, g, _):
        x, z = ctx.saved_tensor()
        return g * (7 * x * x + z), None


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_py_layer_inside(rounds):
    factor = tensor([0.5, 0.25])

    def f(x):
        def body(y, i):
            z, positive = Twice.apply(y, factor)
            return [cond(positive, lambda: z + x * 0.1, lambda: Twice.apply(x, z)[0]), i + 1]

        return while_loop(lambda y, i: i < rounds, body, [x, oar.zeros([], dtype="int64")])[0]

    static = oar.jit.to_static(f)
    for sign in (1.0, -1.0):
        found = []
        for run in (static, f):
            x = tensor([0.5 * sign, 0.4])
            x.stop_gradient = False
            y = run(x)
            (g,) = oar.grad(y.sum(), [x], create_graph=True)
            (h,) = oar.grad((g * g).sum(), [x], allow_unused=True)
            found.append([y.numpy(), g.numpy(), 0 if h is None else h.numpy()])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert oar.jit.capture_counts(static)["whole"] == 2


def test_the_backward_of_a_py_layer_inside_is_checked():
    class Wrong(oar.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.sum()

    with pytest.raises(ValueError, match="Wrong returned a gradient of shape"):
        oar.jit.capture(lambda x: cond(x.sum() > 0, lambda: Wrong.apply(x), lambda: x), [InputSpec([2], stop_gradient=False)])


def test_an_endless_loop_can_be_stopped():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has none
    state = oar.zeros([1])

    def f(x):
        state.add_(oar.ones([1]))
        (y,) = while_loop(lambda v: v.sum() > 0, lambda v: [v + 1], [x])
        return y

    p = program(f, oar.ones([1]))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            p(oar.ones([1]))
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begin < 20
    assert state.item() == 0  # a run that fails changes nothing


def test_text_goes_back_and_forth():
    def f(x, n):
        def body(v, i):
            return [cond(v.sum() > 3, lambda: v * 0.5, lambda: v + x), i + 1]

        return while_loop(lambda v, i: (i < n).all(), body, [x, oar.zeros([1], dtype="int64")])[0]

    p = program(f, oar.ones([2]), oar.to_tensor([4]))
    text = str(p)
    native = oar._C.parse_program(text)
    assert native.text() == text
    inputs = [oar.to_tensor([0.5, 1.0]), oar.to_tensor([4])]
    np.testing.assert_array_equal(native.run(inputs)[0].numpy(), f(*inputs).numpy())


def test_jvp_sees_through_the_predicate():
    x, d = oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.0, -1.0])

    def f(v):
        (w,) = while_loop(lambda u: u.sum() < 10, lambda u: [u * 2], [v])
        return cond(v.sum() > 0, lambda: w * v, lambda: v)

    p = program(f, x)
    for function in (f, lambda v: p(v)):
        _, tangent = oar.func.jvp(function, (x,), (d,))
        np.testing.assert_allclose(oar.to_tensor(tangent).numpy().reshape(-1), [8.0 * 1, -8.0 * 2])


def test_the_test_of_a_loop_gives_a_bool():
    with pytest.raises(TypeError, match="must return one bool"):
        oar.jit.capture(lambda i: while_loop(lambda v: v + 1, lambda v: [v + 1], [i])[0], [InputSpec([1], "int64")])


def test_a_hook_inside_a_branch_is_refused():
    def f(x):
        def branch():
            y = x * 2
            y.register_hook(lambda g: g * 10)
            return y

        return cond(x.sum() > 0, branch, lambda: x)

    with pytest.raises(NotImplementedError, match="inside a branch or loop would never be called"):
        oar.jit.capture(f, [InputSpec([2], stop_gradient=False)])


def test_vmap_goes_slice_by_slice():
    x = oar.to_tensor([[1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]])
    p = program(lambda v: cond(v.sum() > 0, lambda: v * 2, lambda: v * v), x[0])
    got = oar.func.vmap(lambda v: p(v))(x)
    np.testing.assert_array_equal(got.numpy(), [[2, 4], [1, 4], [6, 2]])


@pytest.fixture
def static_mode():
    oar.enable_static()
    yield
    oar.disable_static()


def test_in_a_static_program(static_mode):
    main, startup = oar.static.Program(), oar.static.Program()
    with oar.static.program_guard(main, startup):
        x = oar.static.data("x", [None, 2], "float32")
        y = cond(
            x.sum() > 0,
            lambda: oar.static.nn.fc(x, 3, weight_attr=nn.initializer.Constant(0.5)),
            lambda: oar.zeros([x.shape[0], 3]) - 1,
        )
        i = oar.full([1], 0, "int64")
        z, i = while_loop(lambda v, i: i < 3, lambda v, i: [v * 2, i + 1], [y, i])
        loss = z.mean()
        oar.optimizer.SGD(0.1).minimize(loss)
    exe = oar.static.Executor()
    exe.run(startup)
    feed = np.ones([4, 2], "float32")
    first, rounds = exe.run(main, feed={"x": feed}, fetch_list=[loss, i])
    assert first == pytest.approx(8.0) and rounds.item() == 3
    second, _ = exe.run(main, feed={"x": feed}, fetch_list=[loss, i])
    assert second < first  # the weights in the branch have been trained
    other, _ = exe.run(main, feed={"x": -feed}, fetch_list=[loss, i])
    assert other == pytest.approx(-8.0)


def test_growing_and_random_in_a_static_program(static_mode):
    main, startup = oar.static.Program(), oar.static.Program()
    main.random_seed = 5
    with oar.static.program_guard(main, startup):
        x = oar.static.data("x", [None, 2], "float32")
        n = oar.static.data("n", [1], "int64")

        def body(rows, i):
            row = oar.static.nn.fc(rows[-1:], 2, weight_attr=oar.ParamAttr("w", nn.initializer.Constant(0.5)), bias_attr=False)
            return [oar.concat([rows, nn.functional.dropout(row, 0.5)]), i + 1]

        rows, _ = while_loop(lambda rows, i: i < n, body, [x, oar.zeros([1], "int64")])
        y = cond(n > 2, lambda: rows[1:], lambda: rows * 2)
        loss = (y * y).sum()
        pairs = oar.static.append_backward(loss)
    exe = oar.static.Executor()
    exe.run(startup)
    feed = {"x": np.ones([3, 2], "float32")}
    for rounds in (0, 1, 2, 5):
        feed["n"] = np.array([rounds])
        value, made, slope = exe.run(main, feed=feed, fetch_list=[loss, y, pairs[0][1]])
        assert made.shape == ((2 if rounds > 2 else 3) + rounds, 2)
        # Dropout keeps what is linear in w linear, round by round: Euler's rule for each of the rows.
        assert value == pytest.approx((made * made).sum())
        powers = np.arange(1, rounds + 1)
        last = made[made.shape[0] - rounds:]
        assert (slope * 0.5).sum() == pytest.approx((2 * powers[:, None] * last * last).sum(), rel=1e-5)


def test_append_backward_of_persistable_variables(static_mode):
    with oar.static.program_guard(oar.static.Program()):
        x = oar.full([], -2.0)
        x.stop_gradient = False
        x.persistable = True
        hidden = oar.full([], 3.0)
        hidden.stop_gradient = False
        ((of, slope),) = oar.static.append_backward(case([(x > 0, lambda: x * hidden)], lambda: -x * hidden))
        assert of.is_same(x) and not of.is_same(hidden)
        assert oar.static.Executor().run(fetch_list=[slope])[0] == -3


def test_a_copy_for_tests_leaves_training_out_of_branches_and_loops(static_mode):
    main, startup = oar.static.Program(), oar.static.Program()
    with oar.static.program_guard(main, startup):
        x = oar.static.data("x", [None, 3], "float32")

        def body(y, i):
            y = oar.static.nn.batch_norm(oar.static.nn.fc(y, 3), moving_mean_name="mean")
            return [cond(i > 0, lambda: nn.functional.dropout(y, 0.5), lambda: y + 1), i + 1]

        y, _ = while_loop(lambda y, i: i < 2, body, [x, oar.zeros([1], "int64")])
        test = main.clone(for_test=True)
        oar.optimizer.SGD(0.1).minimize((y * y).mean())
    assert len(main.all_parameters()) == 6  # two of fc, two of batch_norm and its statistics, once each
    exe = oar.static.Executor()
    exe.run(startup)
    feed = {"x": np.random.rand(64, 3).astype("float32")}
    mean = oar.static.global_scope().find_var("mean").get_tensor()
    first, again = (exe.run(test, feed=feed, fetch_list=[y])[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not (first == 0).any() and (np.array(mean) == 0).all()
    (trained,) = exe.run(main, feed=feed, fetch_list=[y])
    assert 0.3 < (trained == 0).mean() < 0.7 and (np.array(mean) != 0).all()
    assert not np.array_equal(exe.run(test, feed=feed, fetch_list=[y])[0], first)  # the weights are shared
