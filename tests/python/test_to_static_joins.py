"""The state after a branch on a tensor: tensors of which one requires a gradient, aliases, objects."""

import pytest
from eager_twin import over_values, run_side_by_side, side_by_side

import oar
from oar import nn


class Box:
    """An object to put things on."""


def constant_or_not(t):
    scale = oar.ones([])
    if t.sum() > 0:
        scale = t.mean()
    return t * scale


def detached_or_not(t):
    if t.sum() > 0:
        y = t * 2
    else:
        y = t.detach()
    return y


def zeros_or_not(t):
    if t.sum() > 0:
        return t * 2
    return oar.zeros_like(t)


def argument_or_detached(t):
    return (t if t.mean() > 0 else t.detach()) * 2


def sum_of_a_loop_from_zeros(t):
    acc = oar.zeros([3])
    n = oar.zeros([])
    while n < 3:
        acc = acc + t.mean(0)
        n = n + 1
    return acc


def loop_that_may_not_begin(t):
    acc = oar.zeros([3])
    while acc.sum() < t.sum():
        acc = acc + t.abs().mean(0) + 0.1
    return acc


def no_grad_or_not(t):
    if t.sum() > 0:
        with oar.no_grad():
            y = t * 2
    else:
        y = t * 3
    return y


def one_list_under_two_names(t):
    if t.sum() > 0:
        a = [t]
        b = a
    else:
        a = [t * 2]
        b = a
    a.append(t * 3)
    return b


def pop_in_both_branches(t):
    out = [t, t * 2, t * 3]
    if t.sum() > 0:
        a = out.pop()
    else:
        a = out.pop(0)
    return a + out[0] + out[1]


def items_of_a_list_in_a_loop(t):
    out = [t, t * 2]
    n = oar.zeros([])
    while n < 3:
        out[0] = out[0] + out[1]
        n = n + 1
    return out[0]


def entries_of_a_dictionary_in_a_loop(t):
    out = {"a": t, "b": t * 2}
    n = oar.zeros([])
    while n < 3:
        out["a"] = out["a"] + out["b"]
        n = n + 1
    return out


def queue_in_a_loop(t):
    q = [t, t * 2]
    n = oar.zeros([])
    while n < 3:
        a = q.pop(0)
        q.append(a + q[0])
        n = n + 1
    return q[1]


def tuple_in_a_loop(t):
    s = (t, t * 2)
    n = oar.zeros([])
    while n < 3:
        s = (s[1], s[0] + s[1])
        n = n + 1
    return s[0]


def attribute_in_a_loop(t):
    b = Box()
    b.a = t
    n = oar.zeros([])
    while n < 3:
        b.a = b.a * 1.5
        n = n + 1
    return b.a


def write_to_one_of_two(t):
    x = t * 1
    y = x if t.sum() > 0 else x * 2
    y.add_(oar.ones([]))
    return x * 1, y


def one_tensor_twice(t):
    a = t * 2
    return (a if t.sum() > 0 else a + 1), a


def before_and_after_a_loop(t):
    a = t * 2
    b = a
    while b.sum() > 3:
        b = b - 1
    return a, b


def iterator_in_a_branch(t):
    its = [iter([1.0, 2.0, 3.0])]
    y = t * 1
    if t.sum() > 0:
        y = y * next(its[0])
    return y * next(its[0])


def number_or_tensor(t):
    y = 0.0
    if t.sum() > 0:
        y = t.sum()
    return t + y


def break_out_of_a_context(t):
    n = oar.zeros([])
    w = t * 2
    while n < 4:
        n = n + 1
        with oar.no_grad():
            w = w * 1.25
            if w.sum() > 5:
                break
    return w * t


def detached_first(t):
    if t[0, 0] > 0.2:
        u, y = t.detach()[0], t * 2
    else:
        u, y = t.detach()[1], t * 3
    return y + u


def detached_first_in_a_loop(t):
    n = oar.zeros([])
    y = t * 1
    while n < 3:
        y = y + t.detach()[0] * t
        n = n + 1
    return y


WHOLE = [
    detached_first, detached_first_in_a_loop,
    constant_or_not, detached_or_not, zeros_or_not, argument_or_detached, sum_of_a_loop_from_zeros,
    loop_that_may_not_begin, no_grad_or_not, one_list_under_two_names, pop_in_both_branches,
    items_of_a_list_in_a_loop, entries_of_a_dictionary_in_a_loop, queue_in_a_loop, tuple_in_a_loop,
    attribute_in_a_loop,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_program(function, derivatives):
    (counts,) = run_side_by_side(over_values(function), derivatives, rtol=1e-4)
    assert counts["whole"] == over_values.calls and counts["segments"] == counts["eager"] == 0, counts
    assert counts["captures"] <= 6, counts


# Right, but in segments: what they return or write may be one tensor or two, an iterator or a number depends on a tensor.
RIGHT = [write_to_one_of_two, one_tensor_twice, before_and_after_a_loop, iterator_in_a_branch, number_or_tensor, break_out_of_a_context]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_as_in_eager_mode(function, derivatives):
    run_side_by_side(over_values(function), derivatives, rtol=1e-4)


@side_by_side
def test_a_step_with_parameters_that_one_way_reads(static, x):
    first, second = (nn.Linear(3, 3, weight_attr=nn.initializer.Constant(0.5)) for _ in range(2))
    optimizer = oar.optimizer.AdamW(0.1, parameters=first.parameters() + second.parameters())
    x.watch(first, second)

    @static
    def step(t):
        loss = (first(t) if t.mean() > 0 else second(t)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss.detach()

    for fill in (1.0, 1.0, -1.0, -1.0, 1.0):
        yield step(x(2, 3, fill=fill, grad=False))


@pytest.mark.parametrize("count", [2, 5, 9, 14])
def test_many_early_returns(count):
    """Each is a branch within the one before; the time to capture them grows linearly with their number."""
    lines = [f"    if t.sum() > {20 - i}:\n        return t * {i}" for i in range(count)]
    scope = {}
    exec("def f(t):\n" + "\n".join(lines) + "\n    return t - 1", scope)  # noqa: S102
    f = oar.jit.to_static(scope["f"])
    for fill in (-1.0, 1.0, 2.0, 3.0, 3.2):
        t = oar.full([2, 3], fill)
        assert (f(t) == scope["f"](t)).all()
    assert oar.jit.capture_counts(f) == {"captures": 1, "whole": 5, "segments": 0, "eager": 0}


def test_a_size_knows_that_only_a_run_tells_it():
    seen = []

    def f(x):
        found = oar.nonzero(x)
        seen.extend([x.shape[0].is_told, found.shape[0].is_told, (x.shape[0] + found.shape[0] * 2).is_told])
        return found

    oar.jit.capture(f, [oar.static.InputSpec([None, 3])])
    assert seen == [False, True, True]


@side_by_side
def test_a_branch_under_no_grad_beside_one_that_flows(static, x):
    @static
    def f(t, u):
        with oar.no_grad():
            if t.sum() < 0:
                t = t.sin()
        return (t * u).sum()

    for fill in (1.0, -1.0, 0.5):
        yield f(x(2, 3, fill=fill), x(2, 3))


@side_by_side
def test_a_loop_under_no_grad_with_continue(static, x):
    @static
    def f(t, u):
        start = t
        with oar.no_grad():
            i = oar.zeros([])
            while i < 3 and t.mean() < 0.6:
                i = i + 1
                t = t.sin()
                if len(t.shape) == 2:
                    continue
        return (t * u).sum() + start.sum()

    for fill in (1.0, -1.0, 0.5):
        yield f(x(2, 3, fill=fill), x(2, 3))


@side_by_side
def test_one_tensor_in_several_places_of_a_result_after_ways_that_return(static, x):
    @static
    def f(t):
        if (t > 0.1).all():
            if len(t.shape) == 3:
                return oar
            t = t * 1.0
        else:
            t = oar.ones_like(t)
        return (t, t, t)

    for fill in (1.0, 0.0):
        made = f(x(2, 3, fill=fill))
        yield made, made[0] is made[1], made[0] is made[2]
