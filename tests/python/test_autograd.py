"""backward, grad, hooks, PyLayer, modes, in-place writes, memory, depth, threads."""

import gc
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

import oar
from oar.autograd import PyLayer


def leaf(values, dtype="float64"):
    return oar.to_tensor(values, dtype=dtype, stop_gradient=False)


def run(code, timeout=120):
    program = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(program, capture_output=True, text=True, timeout=timeout)


# ---- backward --------------------------------------------------------------------------------------


def test_backward_fills_leaves_and_adds_up():
    x = leaf([1.0, 2.0, 3.0])
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 4, 6])
    (x * 3.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [5, 7, 9])
    x.clear_grad()
    assert x.grad is None or not x.grad.numpy().any()
    assert x.is_leaf and x.grad_fn is None


def test_stop_gradient():
    x, y = leaf([1.0]), oar.to_tensor([2.0], dtype="float64")
    z = x * y
    assert y.stop_gradient and not z.stop_gradient and not z.is_leaf and z.grad_fn is not None
    z.backward()
    assert y.grad is None and x.grad.item() == 2
    assert x.detach().stop_gradient and (y * y).stop_gradient and (y * y).is_leaf
    z = x * 2.0
    z.stop_gradient = True
    assert (z * 3.0).stop_gradient


def test_seed_of_backward():
    x = leaf([1.0, 2.0])
    y = x * x
    y.backward(oar.to_tensor([1.0, 10.0], dtype="float64"))
    np.testing.assert_allclose(x.grad.numpy(), [2, 40])
    x.clear_grad()
    (x * x).backward()  # of ones, as in Paddle
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])
    with pytest.raises(ValueError, match="shape"):
        (x * x).backward(oar.ones([3], "float64"))


def test_backward_of_several():
    x = leaf([1.0, 2.0])
    oar.autograd.backward([(x * x).sum(), (x * 3.0).sum()], [None, oar.to_tensor(2.0, dtype="float64")])
    np.testing.assert_allclose(x.grad.numpy(), [8, 10])


def test_used_twice_and_diamond():
    x = leaf([3.0])
    a = x * x
    (a * a + a).sum().backward()
    assert x.grad.item() == 4 * 27 + 6


def test_retain_graph():
    x = leaf([2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    (x * x).sum().backward()
    assert x.grad.item() == 12


def test_retain_grads_of_a_result():
    x = leaf([2.0])
    y = x * x
    y.retain_grads()
    (y * 3.0).backward()
    assert y.grad.item() == 3 and x.grad.item() == 12
    z = x * x
    z.backward()
    assert z.grad is None


def test_retained_gradient_is_that_of_the_value_before_a_write():
    """As in Paddle: retain_grads() asks for the gradient of the value that the tensor has then."""
    x = leaf([2.0])
    for write, kept in [(lambda y: y.multiply_(oar.to_tensor(5.0)), 15), (lambda y: y.uniform_(), 0), (lambda y: y.zero_(), 0)]:
        y = x * x
        y.retain_grads()
        write(y)
        (y * 3.0).backward()
        assert y.grad.item() == kept
    y = x * x
    y.multiply_(oar.to_tensor(5.0))
    y.retain_grads()
    (y * 3.0).backward()
    assert y.grad.item() == 3
    # The graph outlives the tensor.
    y = x * x
    z = y * 3.0
    y = y.detach()
    w = x * x
    w.retain_grads()
    z = w.add_(z) * 2.0
    del w
    z.backward()


def test_retained_gradient_is_what_the_hooks_before_it_made():
    x = leaf([2.0])
    for order, kept in [("hook retain", 6), ("retain hook", 3), ("hook retain hook", 6), ("retain hook hook", 3)]:
        x.clear_gradient()
        y = x * x
        for step in order.split():
            y.retain_grads() if step == "retain" else y.register_hook(lambda g: g * 2)
        (y * 3.0).backward()
        assert y.grad.item() == kept and x.grad.item() == 12 * 2 ** order.split().count("hook")


def test_gradients_of_integers_on_request():
    """As in Paddle: of the integers' dtype, through integer results. Integers made of floats have none."""
    x = oar.to_tensor([3, 4, 5], stop_gradient=False)
    y = x * 2
    y.retain_grads()
    first, second, third = oar.split(oar.concat([y, y[1:], x]), [3, 2, 3])
    (first.sum() + (third * third).sum()).backward()
    assert not x.stop_gradient and y.grad.dtype == x.grad.dtype == oar.int64
    assert y.grad.tolist() == [1, 1, 1] and x.grad.tolist() == [8, 10, 12]
    z = leaf([2.5])
    assert (z * 2).astype("int64").stop_gradient and oar.argmax(z).stop_gradient
    table, places = leaf([[1.0, 2.0], [3.0, 4.0]]), oar.to_tensor([1, 0, 1], stop_gradient=False)
    (oar.gather(table, places).sum() + oar.nn.functional.embedding(places, table).sum()).backward()
    assert places.grad is None and table.grad.tolist() == [[2, 2], [4, 4]]
    sparse = oar.to_tensor([[1, 0], [0, 2]]).to_sparse_coo(2)
    sparse.stop_gradient = False
    oar.sparse.slice(sparse, [0], [1], [2]).backward()
    assert sparse.grad.to_dense().tolist() == [[0, 0], [0, 1]]


def test_backward_without_graph_passes_in_silence():
    """As in Paddle, whose scripts rely on it."""
    x = oar.ones([1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.backward() is None
    assert x.grad is None and x.stop_gradient and x.item() == 1


# ---- grad ------------------------------------------------------------------------------------------


def test_grad_leaves_the_leaves_alone():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    gx, gy = oar.grad((x * y).sum(), [x, y])
    np.testing.assert_allclose(gx.numpy(), [3, 4])
    np.testing.assert_allclose(gy.numpy(), [1, 2])
    assert x.grad is None and y.grad is None and gx.stop_gradient


def test_grad_of_an_inner_tensor():
    x = leaf([2.0])
    y = x * x
    (g,) = oar.grad(y * y, [y])
    assert g.item() == 8


def test_unused():
    x, y = leaf([1.0]), leaf([1.0])
    with pytest.raises((RuntimeError, ValueError), match="allow_unused"):
        oar.grad(x * 2.0, [x, y])
    gx, gy = oar.grad(x * 2.0, [x, y], allow_unused=True)
    assert gx.item() == 2 and gy is None


def test_grad_outputs_and_no_grad_vars():
    x = leaf([1.0, 2.0])
    (g,) = oar.grad(x * x, x, grad_outputs=oar.to_tensor([1.0, 10.0], dtype="float64"))
    np.testing.assert_allclose(g.numpy(), [2, 40])
    a = x * 2.0
    (g,) = oar.grad((a * x).sum(), x, no_grad_vars=[a])
    np.testing.assert_allclose(g.numpy(), [2, 4])


def test_to_order_four():
    x = leaf([0.7])
    value = oar.sin(x) * x
    v = 0.7
    wanted = [np.cos(v) * v + np.sin(v), 2 * np.cos(v) - v * np.sin(v), -3 * np.sin(v) - v * np.cos(v),
              v * np.sin(v) - 4 * np.cos(v)]
    for w in wanted:
        (value,) = oar.grad(value, x, create_graph=True)
        np.testing.assert_allclose(value.numpy(), [w], rtol=1e-12)


def test_what_grad_is_given():
    x = oar.to_tensor([2.0, 3.0], stop_gradient=False)
    for bad in [(None, None), (1, x), (x, 1), ([x], [1]), ([x, x], [x], [x])]:
        with pytest.raises(AssertionError, match=r"\[grad\]"):
            oar.grad(*bad)
    with pytest.raises(AssertionError, match="no_grad_vars"):
        oar.grad([x * 2], [x], no_grad_vars=[1])
    (own,) = oar.grad([x], [x], create_graph=True)
    assert own.tolist() == [1.0, 1.0] and not own.stop_gradient
    (own,) = oar.grad([x], [x])
    assert own.stop_gradient
    # A gradient of shape [1] for a scalar, as programs from before 0-d tensors give it.
    (g,) = oar.grad([(x * x).sum()], [x], [oar.to_tensor([3.0])])
    assert g.tolist() == [12.0, 18.0]
    with pytest.raises(ValueError, match="has shape"):
        oar.grad([(x * x).sum()], [x], [oar.to_tensor([3.0, 1.0])])


def test_gradient_penalty():
    w, x = leaf(np.ones((3, 2))), leaf(np.random.default_rng(0).standard_normal((4, 3)))
    y = oar.tanh(oar.matmul(x, w)).sum()
    (g,) = oar.grad(y, x, create_graph=True)
    ((g ** 2.0).sum()).backward()
    eps = 1e-6

    def penalty(matrix):
        s = 1 - np.tanh(x.numpy() @ matrix) ** 2
        return ((s @ matrix.T) ** 2).sum()
    d = np.zeros((3, 2))
    d[1, 0] = eps
    np.testing.assert_allclose(w.grad.numpy()[1, 0], (penalty(w.numpy() + d) - penalty(w.numpy() - d)) / (2 * eps),
                               rtol=1e-6)


def test_jacobian_and_hessian():
    x = leaf([1.0, 2.0, 3.0])
    j = oar.autograd.jacobian(x * x, x)
    np.testing.assert_allclose(j[:].numpy(), np.diag([2, 4, 6]))
    h = oar.autograd.hessian((x * x * x).sum(), x)
    np.testing.assert_allclose(h[:].numpy(), np.diag([6, 12, 18]))


# ---- modes -----------------------------------------------------------------------------------------


def test_no_grad_forms():
    x = leaf([1.0])
    with oar.no_grad():
        assert not oar.is_grad_enabled() and (x * 2.0).stop_gradient
        with oar.enable_grad():
            assert not (x * 2.0).stop_gradient
    assert oar.is_grad_enabled()

    @oar.no_grad()
    def decorated():
        return x * 2.0

    @oar.no_grad
    def bare():
        return x * 2.0

    @oar.no_grad()
    def generator():
        yield x * 2.0
        yield x * 3.0
    assert decorated().stop_gradient and bare().stop_gradient
    assert all(v.stop_gradient and oar.is_grad_enabled() for v in generator())
    with pytest.raises(KeyError), oar.no_grad():
        raise KeyError
    assert oar.is_grad_enabled()
    with oar.set_grad_enabled(False):
        assert not oar.is_grad_enabled()
    assert oar.is_grad_enabled()


# ---- hooks -----------------------------------------------------------------------------------------


def test_hooks():
    x = leaf([1.0, 2.0])
    seen = []
    y = x * 2.0
    handle = y.register_hook(lambda g: seen.append(g.numpy().copy()))
    doubled = x.register_hook(lambda g: g * 2.0)
    (y * y).sum().backward()
    np.testing.assert_allclose(seen[0], [4, 8])
    np.testing.assert_allclose(x.grad.numpy(), [16, 32])
    assert handle.remove() and not handle.remove()
    assert doubled.remove()
    x.clear_grad()
    y = x * 2.0
    (y * y).sum().backward()
    assert len(seen) == 1
    np.testing.assert_allclose(x.grad.numpy(), [8, 16])


def test_a_hook_for_the_end_of_one_backward():
    from oar.framework import core

    calls = []
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    core.eager._add_backward_final_hook(lambda: calls.append(x.grad.tolist()))
    x.sum().backward()
    oar.autograd.backward([(x * 2).sum()])
    assert calls == [[1.0, 1.0]]

    def fail():
        raise KeyError("end")

    core.eager._add_backward_final_hook(fail)
    with pytest.raises(KeyError, match="end"):
        x.sum().backward()
    x.sum().backward()


def test_hooks_run_in_order_and_once_per_total():
    x = leaf([1.0])
    y = x * 2.0
    y.register_hook(lambda g: g + 1.0)
    y.register_hook(lambda g: g * 10.0)
    (y * 3.0 + y * 4.0).backward()
    assert x.grad.item() == 2 * (7 + 1) * 10


def test_hook_on_a_constant_and_a_hook_that_raises():
    with pytest.raises((RuntimeError, ValueError)):
        oar.ones([1]).register_hook(lambda g: g)
    x = leaf([1.0])
    y = x * 2.0

    def broken(_):
        raise KeyError("mine")
    y.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    (x * 2.0).backward()
    assert x.grad.item() == 2


# ---- PyLayer ---------------------------------------------------------------------------------------


class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return grad * 3.0 * x * x * ctx.scale


def test_pylayer():
    x = leaf([2.0])
    y = Cube.apply(x, scale=2.0)
    y.backward()
    assert y.item() == 16 and x.grad.item() == 24


def test_pylayer_second_order():
    x = leaf([2.0])
    (g,) = oar.grad(Cube.apply(x), x, create_graph=True)
    (h,) = oar.grad(g, x, create_graph=True)
    assert g.item() == 12 and h.item() == 12


def test_pylayer_several():
    class Both(PyLayer):
        @staticmethod
        def forward(ctx, a, n, b):
            ctx.save_for_backward(a, b)
            return a * b, a + b, n

        @staticmethod
        def backward(ctx, product, total):
            a, b = ctx.saved_tensor()
            return product * b + total, product * a + total
    a, b = leaf([2.0]), leaf([5.0])
    p, s, n = Both.apply(a, 7, b)
    assert n == 7
    (p + s * 10.0).backward()
    assert a.grad.item() == 15 and b.grad.item() == 12


def test_pylayer_errors():
    class Wrong(PyLayer):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g
    with pytest.raises(ValueError, match="Wrong"):
        Wrong.apply(leaf([1.0]), leaf([1.0])).backward()

    class Raises(Wrong):
        @staticmethod
        def backward(ctx, g):
            raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        Raises.apply(leaf([1.0]), leaf([1.0])).backward()
    with oar.no_grad():
        assert Cube.apply(leaf([1.0])).stop_gradient


# ---- writing in place ------------------------------------------------------------------------------


def test_leaf_cannot_be_written():
    x = leaf([1.0, 2.0])
    for write in (lambda: x.add_(x), lambda: x.__setitem__(0, 1.0), lambda: x[0:1].add_(oar.ones([1], "float64")),
                  x.exp_, x.zero_):
        with pytest.raises((ValueError, RuntimeError), match="leaf"):
            write()
    with oar.no_grad():
        x.add_(oar.ones([2], "float64"))
    np.testing.assert_allclose(x.numpy(), [2, 3])
    x.set_value(np.array([5.0, 6.0]))
    np.testing.assert_allclose(x.numpy(), [5, 6])


def test_inplace_is_recorded():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    z = y.exp_()
    assert z is y
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([2, 4]))


def test_stale_saved_tensor_names_the_op():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = y * y
    y.add_(oar.ones([2], "float64"))
    with pytest.raises(RuntimeError, match=r"multiply.*in place.*clone"):
        z.sum().backward()
    y = x * 1.0
    e = oar.exp(y)
    e.scale_(2.0)
    with pytest.raises(RuntimeError, match="exp"):
        e.sum().backward()


def test_inplace_version_counts():
    x = oar.ones([2])
    before = x.inplace_version
    x.add_(x)
    x[0] = 1.0
    assert x.inplace_version == before + 2
    assert x[0:1].inplace_version == x.inplace_version


def test_write_through_a_view():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1.0
    row = y[0]
    row.scale_(10.0)
    y[1, 0] = 0.0
    np.testing.assert_allclose(y.numpy(), [[10, 20], [0, 4]])
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[200, 400], [0, 8]])


def test_a_view_sees_a_write_to_its_base():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    v = y[1]
    y.scale_(3.0)
    (v * v).backward()
    np.testing.assert_allclose(v.numpy(), 6)
    np.testing.assert_allclose(x.grad.numpy(), [0, 36])


def test_view_of_a_view():
    x = leaf(np.arange(8.0).reshape(2, 4))
    y = x * 1.0
    y.reshape([4, 2])[1].exp_()
    y.sum().backward()
    wanted = np.ones((2, 4))
    wanted[0, 2:] = np.exp([2, 3])
    np.testing.assert_allclose(x.grad.numpy(), wanted)


def test_complex_gradient_convention():
    """As Paddle and JAX-with-conjugate: the gradient of |z|^2 is 2z."""
    z = oar.to_tensor([1.0 + 2.0j], dtype="complex128", stop_gradient=False)
    (oar.real(z) ** 2.0 + oar.imag(z) ** 2.0).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [2 + 4j])


# ---- size ------------------------------------------------------------------------------------------


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_ten_thousand_steps_in_flat_memory():
    w = leaf(np.ones((8, 8)), "float32")
    x = oar.ones([4, 8])

    def step():
        h = oar.tanh(oar.matmul(x, w))
        (g,) = oar.grad((h * h).sum(), w, create_graph=True)
        (g * g).sum().backward()
        with oar.no_grad():
            w.subtract_(w.grad * 1e-6)
        w.clear_grad()
    for _ in range(500):
        step()
    gc.collect()
    before, used = resident(), oar._C.memory_stats()
    for _ in range(10_000):
        step()
    gc.collect()
    assert resident() - before < 4 << 20
    after = oar._C.memory_stats()
    assert {k: v for k, v in used.items() if "allocated" in k and "peak" not in k and "total" not in k} == \
        {k: v for k, v in after.items() if "allocated" in k and "peak" not in k and "total" not in k}


def test_a_chain_of_a_million_ops():
    done = run("""
        import oar
        x = oar.to_tensor(1.0, dtype="float64", stop_gradient=False)
        y = x
        for _ in range(1_000_000):
            y = y + 1.0
        y.backward()
        assert x.grad.item() == 1.0
        y = x
        for _ in range(300_000):
            y = y * 1.0
        del y
        print("fine")
    """)
    assert done.stdout.strip() == "fine", done.stderr[-2000:]


def test_threads():
    """Threads record and run their own tapes; gradient mode is per thread."""
    w = leaf(np.ones(50))
    results, errors = {}, []

    def work(n):
        try:
            for _ in range(100):
                x = leaf(np.full(50, float(n)))
                if n % 2:
                    with oar.no_grad():
                        assert (x * w).stop_gradient
                (g,) = oar.grad((x * x * w).sum(), x)
            results[n] = g.numpy()
        except Exception as error:  # noqa: BLE001
            errors.append(error)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for n, g in results.items():
        np.testing.assert_allclose(g, 2 * n * np.ones(50))


def test_threads_add_into_one_leaf():
    w = leaf(np.zeros(10))

    def work():
        for _ in range(200):
            (w * 1.0).sum().backward()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_array_equal(w.grad.numpy(), np.full(10, 800.0))


def test_keyboard_interrupt():
    """Ctrl-C ends a loop of ops with KeyboardInterrupt, and the process continues."""
    done = run("""
        import _thread, signal, threading
        import oar
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has none
        x = oar.ones([100, 100])
        threading.Timer(0.3, _thread.interrupt_main).start()
        try:
            while True:
                x = oar.tanh(oar.matmul(x, x))
        except KeyboardInterrupt:
            print("stopped", oar.ones([2]).sum().item())
    """)
    assert done.stdout.split() == ["stopped", "2.0"], done.stderr[-2000:]


# ---- gradients of views: added to the base's in place, if nothing else sees it ------------------


def test_parts_of_a_leaf_add_up():
    x = leaf(np.arange(12.0).reshape(3, 4))
    a, b, c, d = oar.split(x, 4, axis=1)
    ((a * b + c * d).sum() + x[1, 1] * oar.transpose(x, [1, 0])[0, 2]).backward()
    v = x.numpy()
    wanted = v[:, [1, 0, 3, 2]].copy()
    wanted[1, 1] += v[2, 0]
    wanted[2, 0] += v[1, 1]
    np.testing.assert_allclose(x.grad.numpy(), wanted)


def test_parts_of_a_result_add_up():
    x = leaf(np.arange(6.0).reshape(2, 3))
    y = x * 2.0
    (y[0] * y[1] + y[:, 1].sum()).sum().backward()
    v = x.numpy() * 2
    wanted = 2 * v[::-1]
    wanted[:, 1] += 2 * 3
    np.testing.assert_allclose(x.grad.numpy(), wanted)


def test_overlapping_and_repeated_views_add_up():
    x = leaf([1.0, 2.0, 3.0])
    windows = oar.as_strided(x, [2, 2], [1, 1])
    (x[0] + oar.expand(x, [4, 3]).sum() + windows.sum() + x[::2].sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 + 4 + 1 + 1, 4 + 2, 4 + 1 + 1])


def test_a_gradient_that_somebody_holds_is_left_alone():
    x = leaf([1.0, 2.0, 3.0])
    x[:2].sum().backward()
    held = x.grad
    before = held.numpy().copy()
    (x[0] + x[2]).backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 1, 1])
    np.testing.assert_allclose(held.numpy(), before)
    seed = oar.ones([3], dtype="float64")
    y = x * 1.0
    z = y + y[:3]
    z.backward(seed)
    np.testing.assert_allclose(seed.numpy(), 1.0)


# ---- lazy matrices ---------------------------------------------------------------------------------


def test_jacobian_rows_are_computed_when_they_are_read():
    x = leaf([1.0, 2.0, 3.0])
    calls = []
    y = oar.sin(x)
    y.register_hook(lambda grad: calls.append(1))
    j = oar.autograd.jacobian(y, x)
    assert j.shape == [3, 3] and not calls
    np.testing.assert_allclose(j[1].numpy(), [0.0, np.cos(2.0), 0.0], rtol=1e-6)
    assert len(calls) == 1
    assert j[-1, 2].item() == pytest.approx(np.cos(3.0)) and j[1, 1].item() == pytest.approx(np.cos(2.0))
    assert len(calls) == 2
    assert j[0:2, :].shape == [2, 3] and j[:, 0].shape == [3]
    for bad in (3, (0, 0, 0), Ellipsis):
        with pytest.raises(IndexError):
            j[bad]


def test_jacobians_of_scalars_batches_and_several():
    x, s = leaf([1.0, 2.0]), leaf(3.0)
    scalar = oar.autograd.jacobian((x * x).sum() * s, x)
    assert scalar.shape == [2] and scalar[:].tolist() == [6.0, 12.0] and scalar[1].item() == 12.0
    column = oar.autograd.jacobian(x * s, s)
    assert column.shape == [2] and column[:].tolist() == [1.0, 2.0]
    number = oar.autograd.jacobian(s * s, s)
    assert number.shape == [] and (number + 1).item() == 7.0
    with pytest.raises(IndexError):
        number[0]
    rows = oar.autograd.jacobian((x * s, x + s), (x, s))
    assert rows[0][1][:].tolist() == [1.0, 2.0] and rows[1][0][:].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    batch = leaf(np.arange(6.0).reshape(2, 3))
    j = oar.autograd.jacobian(batch**2, batch, batch_axis=0)
    assert j.shape == [2, 3, 3] and j[1, 2, 2].item() == 10.0 and j[:, 1].shape == [2, 3]
    h = oar.autograd.hessian((batch**3).sum(axis=1), batch, batch_axis=0)
    np.testing.assert_allclose(h[:].numpy(), [np.diag(6 * row) for row in batch.numpy()])
    assert type(h).__name__ == "Hessian" and (h @ h).shape == [2, 3, 3]
    with pytest.raises(ValueError, match="ndim should be 0 or 1"):
        oar.autograd.jacobian(batch, batch)
    with pytest.raises(ValueError, match="batch_axis=0"):
        oar.autograd.jacobian(batch, batch, batch_axis=1)
    with pytest.raises(ValueError, match=r"numel\(\)==1"):
        oar.autograd.hessian(x * x, x)
    unused = oar.autograd.jacobian(x * 2, s)
    assert unused[:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("captured", [False, True])
def test_many_rows_of_jacobians_are_computed_together(captured):
    rng = np.random.default_rng(0)
    m, at = rng.standard_normal((300, 7)) / 3, rng.standard_normal(7)
    matrix = oar.to_tensor(m)

    def all_rows(x):
        y = oar.tanh(matrix @ x)
        j = oar.autograd.jacobian(y, x)
        few = j[2:5]  # cached rows and new ones together
        return few, j[:], j[299], oar.autograd.hessian((y**2).sum(), x)[:]

    x = oar.to_tensor(at, stop_gradient=False)
    few, whole, last, hessian = (oar.jit.to_static(all_rows) if captured else all_rows)(x)
    y = np.tanh(m @ at)
    expected = (1 - y**2)[:, None] * m
    np.testing.assert_allclose(few.numpy(), expected[2:5], atol=1e-12)
    np.testing.assert_allclose(whole.numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(last.numpy(), expected[299], atol=1e-12)
    np.testing.assert_allclose(hessian.numpy(), m.T @ ((2 * (1 - y**2) * (1 - 3 * y**2))[:, None] * m), atol=1e-12)
    (slope,) = oar.grad((whole**2).sum(), x)  # rows are recorded
    weight = (m**2).sum(1)
    np.testing.assert_allclose(slope.numpy(), m.T @ (-4 * y * (1 - y**2) ** 2 * weight), atol=1e-11)


def test_rows_of_jacobians_of_what_does_not_depend_are_zero():
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    z = oar.to_tensor([3.0, 4.0, 5.0], stop_gradient=False)
    j = oar.autograd.jacobian(z * z, x)[:]
    assert j.shape == [3, 2] and not j.numpy().any() and not j.stop_gradient


def test_hooks_of_leaves_run_when_their_gradient_is_complete():
    """Those of the last layers before the others, and once, however often the leaf was used."""
    events = []
    first, last = (oar.ones([2]) for _ in range(2))
    for name, leaf in (("first", first), ("last", last)):
        leaf.stop_gradient = False
        leaf.register_hook(lambda gradient, name=name: events.append((name, gradient.tolist())))
    hidden = first * 2
    hidden.register_hook(lambda gradient: events.append(("hidden", gradient.tolist())))
    (hidden * last + last).sum().backward()
    assert events == [("last", [3, 3]), ("hidden", [1, 1]), ("first", [2, 2])]
    # A branch that no gradient reaches does not keep a hook from running.
    events.clear()
    idle = (first * 3).detach() + first * 0
    (first * idle.detach()).sum().backward()
    assert [name for name, _ in events] == ["first"]
