"""Functions that need values run as Python, and their ops in segments: everything is as in eager mode."""

import gc
import random
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import oar
from oar import _C, nn
from oar.jit import capture_counts, to_static
from oar.nn import functional as F


def numbers(*shape, seed=0, grad=False):
    t = oar.to_tensor(np.random.default_rng(seed).standard_normal(shape).astype("float32"))
    t.stop_gradient = not grad
    return t


def in_segments(function, *args, **kwargs):
    """The function as the fallback runs it, even if it could be captured."""
    return _C.run_in_segments(function, args, kwargs, "")


def same(got, want):
    """Bit for bit."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, oar.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape and got.stop_gradient == want.stop_gradient
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    else:
        assert got == want


def agree(function, *shapes, times=4, grad=True):
    """Values and gradients of eager mode and of segments, several times over: one by one, then as programs."""
    for round_ in range(times):
        want, want_grads = _with_gradients(function, shapes, round_, grad, lambda f, *a: f(*a))
        got, got_grads = _with_gradients(function, shapes, round_, grad, in_segments)
        same(got, want)
        same(got_grads, want_grads)


def _with_gradients(function, shapes, seed, grad, run):
    args = [numbers(*shape, seed=i + 10 * seed, grad=grad) for i, shape in enumerate(shapes)]
    out = run(function, *args)
    roots = [t for t in (out if isinstance(out, (list, tuple)) else [out]) if isinstance(t, oar.Tensor)]
    roots = [t for t in roots if not t.stop_gradient]
    if grad and roots:
        sum((t * t).sum() for t in roots).backward()
    return out, [t.grad for t in args if t.grad is not None]


# ---- control flow ----------------------------------------------------------------------------------


def test_a_branch_on_a_value():
    def f(x):
        y = (x * 2 + 1).tanh()
        return y.exp() if float(y.sum()) > 0 else y - 1

    agree(f, [3, 4], times=6)


def test_a_loop_until_convergence():
    def f(x):
        steps, y = 0, x
        while float((y * y - 2).abs().max()) > 1e-6 and steps < 50:
            y = y - (y * y - 2) / (2 * y)
            steps += 1
        return y, steps

    x = oar.to_tensor([1.0, 2.0, 5.0])
    same(in_segments(f, x), f(x))
    np.testing.assert_allclose(in_segments(f, x)[0].numpy(), np.sqrt([2, 2, 2]), rtol=1e-6)


def test_an_early_return():
    def f(x):
        for i in range(5):
            x = x * 1.5
            if x.abs().max() > 4:
                return x, i
        return x, -1

    agree(f, [4], times=6)


def test_the_traces_of_two_branches_are_two_programs():
    def f(x, up):
        y = x * 3
        y = y + 1 if up else y - 1
        z = y.exp()
        return z.sum().item()

    x = numbers(5)
    for up in (True, False, True, False, True, False):
        assert in_segments(f, x, up) == f(x, up)


# ---- values in the middle ---------------------------------------------------------------------------


def test_numpy_in_the_middle():
    def f(x):
        y = (x + 1) * 2
        seen = y.numpy().copy()
        return y * oar.to_tensor(seen), seen.sum()

    agree(f, [3, 2])


def test_every_way_to_look_at_a_value():
    def f(x):
        y = x * 2 + 1
        s = y.sum()
        return [
            s.item(), float(s), int(s), bool(s > 0), y.tolist(), str(y), repr(s), f"{float(s):.3f}",
            np.asarray(y).tolist(), list(map(float, y)), y[0].item(), float(y.max()), len(y), s.numpy().tolist(),
            oar.to_tensor([1.0, 2.0])[int(s > 0)].item(), y.astype("int64").tolist(),
        ]

    x = numbers(3)
    for _ in range(3):
        assert in_segments(f, x) == f(x)


def test_printing_inside(capsys):
    def f(x):
        y = x + 1
        print(y)
        return y * 2

    f(numbers(2))
    want = capsys.readouterr().out
    in_segments(f, numbers(2))
    assert capsys.readouterr().out == want


def test_a_size_that_depends_on_values():
    def f(x):
        kept = oar.masked_select(x * 2, x > 0)
        rows = oar.nonzero(x > 0)
        return kept + 1, rows, kept.shape[0]

    agree(f, [4, 5], grad=False)


# ---- views and writes -------------------------------------------------------------------------------


def test_writes_to_what_the_function_makes():
    def f(x):
        y = x * 2
        y.add_(oar.ones([3, 4]))
        z = y.exp()
        y.multiply_(oar.full([3, 4], 3.0))
        return y, z

    agree(f, [3, 4], grad=False)


def test_writes_through_views():
    def f(x):
        y = x + 0
        y[0] = 7.0
        y[:, 1] += 2.0
        z = y.reshape([-1])
        z.add_(oar.ones([12]))
        row = y[2]
        row.multiply_(oar.full([4], 2.0))
        return y, z, row

    agree(f, [3, 4], grad=False)
    agree(f, [3, 4])


def test_results_share_memory_as_in_eager_mode():
    def f(x):
        y = x * 2
        return y, y[1], y.reshape([-1]), oar.transpose(y, [1, 0])

    for _ in range(3):
        y, row, flat, turned = in_segments(f, numbers(3, 4))
        row.add_(oar.ones([4]))
        np.testing.assert_array_equal(y.numpy()[1], row.numpy())
        np.testing.assert_array_equal(flat.numpy(), y.numpy().reshape(-1))
        np.testing.assert_array_equal(turned.numpy(), y.numpy().T)


def test_writes_to_arguments_and_outside_are_in_order():
    outside = oar.zeros([3])

    def f(x):
        y = x * 2 + outside  # queued, and reads the old contents
        x.add_(oar.ones([3]))
        outside.add_(x)
        return y, x * 1, outside + 0

    for _ in range(3):
        outside.zero_()
        a, want = oar.zeros([3]), None
        want = [t.numpy().copy() for t in f(a)]
        outside.zero_()
        b = oar.zeros([3])
        got = [t.numpy() for t in in_segments(f, b)]
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_writes_to_parts_of_one_memory():
    base = oar.zeros([4, 3])

    def f(x):
        a, b = base[0], base[1]
        a.add_(x)
        b.add_(a)
        whole = base * 2
        a.copy_(b + x, False) if hasattr(a, "copy_") else a.set_value(b + x)
        b.multiply_(b)
        flat = base.reshape([-1])
        flat.add_(oar.ones([12]))
        return whole, base + 0, flat * 1, a + b

    for i in range(4):
        base.zero_()
        want = [t.numpy().copy() for t in f(numbers(3, seed=i))]
        base.zero_()
        for got, w in zip(in_segments(f, numbers(3, seed=i)), want):
            np.testing.assert_array_equal(got.numpy(), w)


def test_a_value_that_is_written_to_two_places():
    a, b = oar.zeros([3]), oar.zeros([3])

    def f(x):
        y = x * 2 + 1
        a.set_value(y)
        b.set_value(a)
        a.add_(b)
        y.add_(a)
        a.set_value(x)
        return y, a + b

    for i in range(4):
        x = numbers(3, seed=i)
        want = [t.numpy().copy() for t in (*f(x), a, b)]
        a.zero_(), b.zero_()
        got = in_segments(f, x)
        for g, w in zip((*got, a, b), want):
            np.testing.assert_array_equal(g.numpy(), w)
        np.testing.assert_array_equal(x.numpy(), numbers(3, seed=i).numpy())


def test_a_write_that_would_spoil_a_gradient_is_refused():
    def f(x):
        y = x.exp()
        z = y * 2
        y.add_(oar.ones([3]))
        return z, y

    for run in (lambda g, *a: g(*a), in_segments):
        z, y = run(f, numbers(3, grad=True))
        with pytest.raises(RuntimeError, match="changed in place since"):
            (z.sum() + y.sum()).backward()


def test_memory_that_numpy_shares():
    def f(x):
        shared = x.numpy()
        y = x * 2
        shared += 1  # numpy writes the memory of x; y was computed before
        return y, x + 0

    def late(x):
        y = x * 2  # queued
        x.numpy()[:] += 1
        return y, x + 0

    for _ in range(3):
        same(in_segments(f, numbers(4)), f(numbers(4)))
        same(in_segments(late, numbers(4)), late(numbers(4)))

    array = np.ones(4, "float32")
    t = oar.utils.dlpack.from_dlpack(array)

    def foreign():
        y = t * 2 + 1
        array[:] += 1
        return y

    np.testing.assert_array_equal(in_segments(foreign).numpy(), [3, 3, 3, 3])


# ---- gradients --------------------------------------------------------------------------------------


def test_gradients_through_two_segments():
    def f(x, w):
        h = (x @ w).tanh()
        scale = float(h.abs().mean())
        return (h @ w * scale).sigmoid().sum(), h

    agree(f, [5, 4], [4, 4])


def test_backward_inside():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def f(x):
        loss = (net(x) ** 2).mean()
        loss.backward()
        norm = sum(float((p.grad * p.grad).sum()) for p in net.parameters())
        grads = [p.grad for p in net.parameters()]
        net.clear_gradients()
        return loss.detach(), norm, grads

    for seed in range(4):
        same(in_segments(f, numbers(3, 4, seed=seed)), f(numbers(3, 4, seed=seed)))


def test_derivatives_of_derivatives():
    def f(x):
        y = (x**3).sum()
        (g,) = oar.grad(y, x, create_graph=True)
        scale = float(g.max())
        (h,) = oar.grad((g * scale).sum(), x)
        return h

    for seed in range(3):
        same(in_segments(f, numbers(4, seed=seed, grad=True)), f(numbers(4, seed=seed, grad=True)))


def test_hooks_and_no_grad():
    def f(x):
        seen = []
        y = x * 3
        y.register_hook(lambda g: seen.append(g.numpy().tolist()) or g * 2)
        y.retain_grads()
        with oar.no_grad():
            z = y * 5
        assert z.stop_gradient and not y.stop_gradient
        (y * y).sum().backward()
        return seen, y.grad, x.grad

    for _ in range(3):
        same(in_segments(f, numbers(3, grad=True)), f(numbers(3, grad=True)))


def test_mixed_precision():
    def f(x, w):
        with oar.amp.auto_cast(dtype="bfloat16"):
            y = x @ w
            if float(y.astype("float32").sum()) > 0:
                y = y * 2
            return y @ w

    agree(f, [4, 4], [4, 4])


# ---- layers and steps ---------------------------------------------------------------------------------


def twins(make):
    oar.seed(5)
    first = make()
    second = make()
    second.set_state_dict(first.state_dict())
    return first, second


def test_dropout_draws_the_same_numbers():
    def f(x):
        y = F.dropout(x * 2, 0.5)
        z = oar.rand([3]) + y.sum().item()
        return y, z, F.dropout(y + 1, 0.3), oar.randn([2])

    for _ in range(4):
        oar.seed(11)
        want = f(numbers(4, 5))
        after = oar.rand([2])
        oar.seed(11)
        same(in_segments(f, numbers(4, 5)), want)
        same(oar.rand([2]), after)


def test_the_random_state_is_seen_in_order():
    def f(x):
        a = oar.rand([3]) + x
        oar.seed(7)
        b = oar.rand([3]) + x
        state = oar.get_rng_state()
        c = oar.rand([3]) * x
        oar.set_rng_state(state)
        return a, b, c, oar.rand([3]) * x

    for _ in range(3):
        oar.seed(3)
        want = f(numbers(3))
        oar.seed(3)
        same(in_segments(f, numbers(3)), want)


def test_batch_norm_keeps_its_statistics():
    a, b = twins(lambda: nn.Sequential(nn.Conv2D(2, 4, 3), nn.BatchNorm2D(4), nn.ReLU()))

    def step(net, x):
        y = net(x)
        return y * float(y.mean())

    for i in range(4):
        x = numbers(2, 2, 6, 6, seed=i)
        same(in_segments(step, b, x), step(a, x))
        for p, q in zip(a.state_dict().values(), b.state_dict().values()):
            same(q, p)


def test_a_training_step_that_skips_by_value():
    a, b = twins(lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3)))
    optimizers = [
        oar.optimizer.AdamW(1e-2, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
        for net in (a, b)
    ]

    def step(net, optimizer, x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        norm = float(sum((p.grad**2).sum() for p in net.parameters()) ** 0.5)
        skipped = norm > 1.2
        if not skipped:
            optimizer.step()
        optimizer.clear_grad()
        return loss, skipped

    skips = []
    static = to_static(step)
    for i in range(8):
        x, y = numbers(5, 6, seed=i), oar.to_tensor(np.arange(5) % 3)
        oar.seed(i)
        want = step(a, optimizers[0], x, y)
        oar.seed(i)
        got = static(b, optimizers[1], x, y)
        same(got, want)
        skips.append(want[1])
    assert len(set(skips)) == 2  # both ways were taken
    for p, q in zip(a.parameters(), b.parameters()):
        same(q, p)
    counts = capture_counts(static)
    assert counts["segments"] == 8 and counts["eager"] == counts["whole"] == 0


# ---- what Python does -----------------------------------------------------------------------------------


def test_python_runs_at_every_call():
    kept, rng = [], random.Random(3)

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.calls, self.last = 0, None

        def forward(self, x):
            self.calls += 1
            self.last = x * self.calls
            kept.append(self.last + rng.random())
            return self.last.sum() * np.random.rand()

    net = to_static(Net())
    np.random.seed(1)
    got = [float(net(numbers(3))) for _ in range(4)]
    np.random.seed(1)
    reference = random.Random(3)
    for i in range(4):
        want = float((numbers(3) * (i + 1)).sum() * np.random.rand())
        assert got[i] == want
        same(kept[i], numbers(3) * (i + 1) + reference.random())
    assert net.calls == 4 and capture_counts(net)["segments"] == 4
    same(net.last, numbers(3) * 4)


def test_results_are_ordinary_tensors():
    def f(x):
        y = x * 2
        y.tag = "mine"
        y.item = None
        del y.item
        return y, x

    x = numbers(3)
    y, back = in_segments(f, x)
    assert back is x and y.tag == "mine"
    ref = weakref.ref(y)
    del y
    gc.collect()
    assert ref() is None


def test_functions_in_functions():
    inner_whole = to_static(lambda x: (x * 2).tanh() + 1)

    @to_static
    def inner_segments(x):
        return x * float(x.sum())

    def f(x):
        y = inner_whole(x + 1)
        return inner_segments(y) + inner_whole(y)

    plain = lambda x: (x * 2).tanh() + 1  # noqa: E731

    def reference(x):
        y = plain(x + 1)
        return y * float(y.sum()) + plain(y)

    for _ in range(3):
        same(in_segments(f, numbers(3)), reference(numbers(3)))


def test_recursion():
    @to_static
    def halve(x, depth):
        y = x / 2
        return y if float(y.abs().max()) < 0.1 or depth == 0 else halve(y, depth - 1) * 1

    def plain(x, depth):
        y = x / 2
        return y if float(y.abs().max()) < 0.1 or depth == 0 else plain(y, depth - 1) * 1

    for _ in range(2):
        same(halve(numbers(4), 6), plain(numbers(4), 6))


def test_transforms_inside():
    def f(x):
        y = oar.func.vmap(lambda row: row * row.sum())(x * 2)
        value, tangent = oar.func.jvp(lambda t: t.exp() * 2, (y,), (oar.ones_like(y),))
        return value * float(tangent.mean())

    for _ in range(3):
        same(in_segments(f, numbers(3, 2)), f(numbers(3, 2)))


def test_a_user_defined_layer_function():
    class Square(oar.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x if float(x.sum()) > -100 else x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensor()
            return grad * x * 2

    agree(lambda x: Square.apply(x * 2) + 1, [3])


# ---- errors -------------------------------------------------------------------------------------------


def failing(x, index):
    y = x * 2
    z = oar.gather(y, index)  # this line fails
    return z.sum() + y.sum()


def line_of(text):
    with open(__file__) as source:
        return next(i for i, line in enumerate(source, 1) if text in line and "line_of" not in line)


@pytest.mark.parametrize("times", [1, 3])
def test_an_error_names_the_op_and_the_line(times):
    for _ in range(times):
        in_segments(lambda: float(failing(numbers(4), oar.to_tensor([0, 1]))))
    with pytest.raises(Exception, match="gather") as caught:
        in_segments(lambda: float(failing(numbers(4), oar.to_tensor([0, 99]))))
    assert f"{__file__}:{line_of('# this line fails')}" in str(caught.value)
    with pytest.raises(type(caught.value), match="gather"):
        failing(numbers(4), oar.to_tensor([0, 99]))


def test_what_stands_before_an_error_is_there_and_what_follows_is_not():
    outside, kept = oar.zeros([2]), {}

    def f(x):
        kept["before"] = x + 1
        bad = oar.gather(x, oar.to_tensor([7]))
        kept["after"] = bad + 1
        outside.add_(bad.sum() + outside)

    with pytest.raises(Exception, match="gather"):
        in_segments(f, numbers(4))
    same(kept["before"], numbers(4) + 1)
    assert outside.numpy().tolist() == [0, 0]


def test_an_error_that_is_caught_comes_again_with_the_tensor():
    def f(x):
        bad = oar.gather(x, oar.to_tensor([7]))
        for _ in range(2):
            with pytest.raises(Exception, match="gather"):
                bad.numpy()
        with pytest.raises(Exception, match="gather"):
            (bad * 2).numpy()
        return x + 1

    same(in_segments(f, numbers(4)), numbers(4) + 1)
    with pytest.raises(Exception, match="gather"):  # the tensor would live on
        in_segments(lambda x: oar.gather(x, oar.to_tensor([7])), numbers(4))


def test_an_exception_of_python_leaves_what_was_made():
    kept = []

    def f(x):
        kept.append(x * 2 + 1)
        raise KeyError("own")

    for _ in range(3):
        with pytest.raises(KeyError, match="own"):
            in_segments(f, numbers(3))
        same(kept.pop(), numbers(3) * 2 + 1)


def test_errors_of_shapes_come_at_the_call():
    def f(x):
        y = x * 2
        try:
            y + oar.ones([7])
        except ValueError as error:
            return y, str(error)

    x = numbers(3)
    same(in_segments(f, x), f(x))


# ---- how it runs ----------------------------------------------------------------------------------------


def test_a_segment_that_is_met_again_runs_as_a_program():
    def f(x):
        return ((x * 2 + 1).tanh() - x).exp()

    x = numbers(3, 3, seed=99)
    before = _C.segment_counts()
    for _ in range(5):
        in_segments(f, x)
    calls, segments, programs = (b - a for a, b in zip(before, _C.segment_counts()))
    assert (segments, programs) == (5, 4) and calls >= 25


def test_what_watches_ops_sees_them_at_once():
    def f(x):
        return oar.log(x * 0) * 0

    oar.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(RuntimeError, match="There are NAN or INF"):
            in_segments(f, oar.ones([3]))
    finally:
        oar.set_flags({"FLAGS_check_nan_inf": False})


def test_memory_stays_flat_with_many_shapes():
    @to_static
    def f(x):
        y = x * 2 + 1
        return y.tanh() if float(y.sum()) > 0 else y.exp()

    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    for i in range(2000):
        f(oar.ones([1 + i % 50, 1 + i % 7]))
    gc.collect()
    before = resident()
    for i in range(8000):
        f(oar.ones([1 + i % 50, 1 + i % 7]))
    gc.collect()
    assert resident() - before < 16 << 20
    assert capture_counts(f)["segments"] == 10000


def test_threads():
    def f(x):
        y = x
        for _ in range(5):
            y = (y * 1.5).tanh()
            if float(y.sum()) > 1e9:
                return x
        return y

    static, wrong = to_static(f), []

    def work(seed):
        for i in range(20):
            x = numbers(6, seed=seed * 100 + i)
            if not np.array_equal(static(x).numpy(), f(x).numpy()):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_thread_that_is_started_inside():
    def f(x):
        y, found = x * 3 + 1, []
        worker = threading.Thread(target=lambda: found.append((y * 2).numpy().tolist()))
        worker.start()
        worker.join()
        return found, y

    for _ in range(3):
        same(in_segments(f, numbers(4)), f(numbers(4)))


def test_the_trace_and_the_test_mode(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import oar\n"
        "@oar.jit.to_static\n"
        "def f(x):\n"
        "    y = x * 2\n"
        "    return y * y.sum().item()\n"
        "f(oar.ones([3]))\n"
    )
    import os

    ran = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "OAR_TRACE": "capture"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert f"a value is read ({script}:5)" in ran.stderr
    ran = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "OAR_TEST_MODE": "captured"}, capture_output=True, text=True
    )
    assert ran.returncode != 0 and "was not captured" in ran.stderr
    assert "segments 1" in ran.stderr
