"""Captured functions never give a stale result: tensors outside, and writes in place."""

import numpy as np
from eager_twin import Box, raised, side_by_side

import oar


# tensors outside ---------------------------------------------------------------------------------


@side_by_side
def test_a_tensor_outside_is_written_and_replaced(static, x):
    w = oar.ones([3])
    f = static(lambda t: t * w)
    yield f(x())
    w.add_(oar.ones([3]))
    yield f(x())
    w.set_value(np.full(3, 7.0, "float32"))
    yield f(x())
    w[0] = -1.0
    yield f(x())
    w = oar.full([3], 9.0)
    yield f(x())
    w = oar.full([2, 1], 2.0)
    yield f(x())
    w = oar.full([3], 3.0, dtype="float64")
    yield f(x())
    w = 4.0
    yield f(x())


@side_by_side
def test_stop_gradient_of_a_tensor_outside(static, x):
    w = oar.ones([3])
    f = static(lambda t: t * w)
    x.watch(w)
    for w.stop_gradient in (True, True, False, True, False):
        y = f(x())
        yield y, y.stop_gradient


@side_by_side
def test_stop_gradient_of_an_argument(static, x):
    f = static(lambda t: (t * 2, t.stop_gradient, t.is_leaf))
    for grad in (False, True, False):
        yield f(x(grad=grad)), f(x(grad=grad) * 1)


@side_by_side
def test_stop_gradient_is_set_inside(static, x):
    c = Box(freeze=True)

    @static
    def f(t):
        y = t * 2
        y.stop_gradient = c.freeze
        return y * 3 + t

    for c.freeze in (True, True, False, True):
        yield f(x())


@side_by_side
def test_attributes_of_tensors(static, x):
    w = oar.ones([3])
    w.tag = 1.0
    f = static(lambda t: (t * w.tag, w.name, getattr(t, "tag", None)))
    w.name = "first"
    yield f(x())
    w.tag = 2.0
    yield f(x())
    w.name = "second"
    yield f(x())
    t = x()
    t.tag = "mine"
    yield f(t), f(x())


@side_by_side
def test_contiguous_or_not(static, x):
    f = static(lambda t: (t * 2 if t.is_contiguous() else t - 1))
    g = static(lambda: w * 2 if w.is_contiguous() else w - 1)
    w = oar.ones([2, 3])
    yield f(x()), f(x(3, 2).t()), f(x()), f(x(3, 2).t()), g()
    w = oar.ones([3, 2]).t()
    yield g()


@side_by_side
def test_whether_there_is_a_gradient(static, x):
    w = oar.ones([3])
    w.stop_gradient = False
    f = static(lambda t: t * 2 if w.grad is None else t + w.grad)
    yield f(x())
    yield f(x())
    (w * 3).sum().backward()
    yield f(x())
    (w * 4).sum().backward()
    yield f(x())
    w.clear_gradient(False)
    yield f(x())
    t = x(grad=True)
    g = static(lambda t: (t * 2, t.grad is None))
    yield g(t)
    (t * 5).sum().backward()
    yield g(t)


@side_by_side
def test_values_of_tensors_outside(static, x):
    w, flag, steps = oar.ones([3]), oar.to_tensor(True), oar.to_tensor([2])

    @static
    def f(t):
        y = t * w.sum().item() + float(w[0]) + int(steps)
        if flag:
            y = y - 1
        return y, w.tolist(), w.numpy().sum(), bool(flag), [float(v) for v in w]

    yield f(x())
    yield f(x())
    w.add_(oar.ones([3]))
    yield f(x())
    flag = oar.to_tensor(False)
    yield f(x())
    flag.set_value(np.array(True))
    yield f(x())
    steps.add_(oar.to_tensor([1]))
    yield f(x())
    w.numpy()[0] = 50.0
    yield f(x())


@side_by_side
def test_values_of_arguments(static, x):
    @static
    def f(t):
        scale = t.sum().item()
        array = t.numpy()
        return t * scale + float(t[0, 0]), array.max(), t.tolist(), int(t.sum() > 0), str(t.shape), t[0].numpy().copy()

    for _ in range(4):
        yield f(x())


@side_by_side
def test_a_tensor_is_kept_and_used_later(static, x):
    c = Box(last=None, seen=[], total=oar.zeros([]))

    @static
    def f(t):
        y = t * 2 if c.last is None else t * 2 + c.last
        c.last = y.detach()
        c.seen.append(y.mean())
        c.total = c.total + y.sum().detach()
        return y

    for _ in range(4):
        yield f(x()), c
    c.last = None
    yield f(x()), c


@side_by_side
def test_results_are_new_tensors(static, x):
    f = static(lambda t: (t * 2, oar.zeros([3])))
    first, zeros = f(x())
    kept = first.clone()
    second, more = f(x())
    zeros.add_(oar.ones([3]))
    second.detach().zero_()
    third = f(x())
    yield first, kept, zeros, more, third


@side_by_side
def test_results_that_are_inputs_or_outside(static, x):
    w = oar.ones([3])
    f = static(lambda t: [t, t, w, t * 2])
    t = x()
    got = f(t)
    yield got, got[0] is t, got[1] is t, got[2] is w
    got = f(t)
    yield got, got[0] is t, got[2] is w
    y = static(lambda t: [t * 2] * 2)(x())
    yield y, y[0] is y[1]


@side_by_side
def test_results_that_are_objects_outside(static, x):
    c, items = Box(s=1), [1]
    f = static(lambda t: (c, items, t * 2, {"c": c}))
    got = f(x())
    yield got[0] is c, got[1] is items, got[3]["c"] is c
    got = f(x())
    got[1].append(2)
    yield got[0] is c, got[1] is items, items, f(x())


@side_by_side
def test_fresh_results_in_python(static, x):
    f = static(lambda t: {"list": [1, 2], "t": t * 2, "set": {3}})
    got = f(x())
    got["list"].append(9)
    got["set"].add(9)
    yield got, f(x()), f(x())


# writes in place ---------------------------------------------------------------------------------


@side_by_side
def test_a_buffer_that_is_the_argument(static, x):
    buf = oar.zeros([3])

    @static
    def f(t):
        buf.add_(oar.ones([3]))
        return t * 2 + buf

    yield f(oar.ones([3])), buf
    yield f(buf), buf
    yield f(buf), buf
    yield f(oar.ones([3])), buf
    yield f(buf.reshape([3, 1])), buf


@side_by_side
def test_views_of_one_memory(static, x):
    base = oar.zeros([2, 3])
    row = base[0]

    @static
    def f(t):
        row.add_(oar.ones([3]))
        base[1] = base[1] + row
        return t + base, base.sum()

    for _ in range(3):
        yield f(x()), base, row
    base.zero_()
    yield f(x()), base, row
    yield f(base), base, row


@side_by_side
def test_arguments_that_share_memory(static, x):
    @static
    def f(a, b):
        a.add_(oar.ones([3]))
        return a * b

    base = oar.ones([2, 3])
    yield f(base[0], base[1]), base
    yield f(base[0], base[0]), base
    one = oar.ones([3])
    yield f(one, one), one
    yield f(one, one.detach()), one


@side_by_side
def test_writes_to_arguments(static, x):
    c = Box(on=True)

    @static
    def f(t):
        t = t.detach()
        if c.on:
            t[0] = 5.0
        t.scale_(2.0)
        return t + 1

    for c.on in (True, True, False, True):
        t = x()
        yield f(t), t


@side_by_side
def test_writes_outside_that_the_function_reads_later(static, x):
    count, mean = oar.zeros([]), oar.zeros([3])

    @static
    def f(t):
        count.add_(oar.ones([]))
        before = mean * 1
        mean.set_value(mean * 0.5 + t.detach().mean(0) * 0.5)
        return t * count - mean + before

    for _ in range(3):
        yield f(x()), count, mean
    count.zero_()
    yield f(x()), count, mean
    mean.set_value(np.ones(3, "float32"))
    yield f(x()), count, mean


@side_by_side
def test_writes_before_an_error(static, x):
    total, c = oar.zeros([3]), Box(bad=False)

    @static
    def f(t):
        total.add_(oar.ones([3]))
        if c.bad:
            raise ValueError("late")
        return t + total

    for c.bad in (False, True, False, True, True, False):
        yield raised(f, x()), total


@side_by_side
def test_errors_of_ops(static, x):
    f = static(lambda a, b: a + b)
    for shape in ((2, 3), (4, 5), (2, 3), (1, 3), (7,), (2, 3)):
        yield raised(f, x(), x(*shape), message=False)
    g = static(lambda a, i: oar.gather(a, i))
    for index in ([0, 1], [5], [0, 0], [1, -7]):
        yield raised(g, x(), oar.to_tensor(index), message=False)
