"""Branches and loops on the values of tensors that must be one program, with eager mode's results and gradients."""

import pytest
from eager_twin import over_values, run_side_by_side

import oar
from oar import nn


def if_else(t):
    if t.sum() > 0:
        y = t * 2
    else:
        y = t - 1
    return y


def if_alone(t):
    if t.sum() > 0:
        t = t * 2
    return t + 1


def if_elif_else(t):
    s = t.sum()
    if s > 5:
        return t * 2
    elif s > 0:
        return t.tanh()
    elif s == 0:
        return t + 10
    else:
        return t - 1


def if_nested(t):
    if t.sum() > 0:
        if t.max() > 2:
            y = t * 3
        else:
            y = t * 5
    else:
        y = t.exp()
    return y + t


def if_two_results(t):
    if t.mean() > 0:
        a, b = t * 2, t + 1
    else:
        a, b = t - 1, t * t
    return a * b, b


def if_reads_outside(t, w=oar.full([3], 2.0)):
    if (t * w).sum() > 0:
        return t * w
    return w - t


def if_then_shared_tail(t):
    y = t * 2
    if y.sum() > 4:
        y = y.sin()
    if y.mean() < 0:
        y = -y
    return y.sum()


def if_on_an_element(t):
    return t * 2 if t[0, 0] > 0 else t[0].sum() + t


def if_on_a_bool_tensor(t):
    mask = (t > 0).all()
    if mask:
        t = t * 4
    return t


def if_with_an_early_return(t):
    y = t * 2
    if y.sum() > 3:
        return y
    y = y + 1
    if y.sum() < 0:
        return -y
    return y * 10


def if_with_assignments_to_one_variable(t):
    scale = oar.ones([])
    if t.sum() > 0:
        scale = t.mean()
    return t * scale


def while_(t):
    y = t + 0
    while y.abs().sum() < 10 and y.abs().sum() > 0:
        y = y * 2
    return y


def while_with_a_counter(t):
    i = oar.zeros([], dtype="int64")
    while (t.abs().max() > 0.1).logical_and(i < 20):
        t = t / 2
        i = i + 1
    return t, i


def while_alone(t):
    while t.sum() > 1:
        t = t - 1
    return t * 2


def while_with_break(t):
    n = oar.zeros([])
    while n < 10:
        n = n + 1
        t = t * 1.5
        if t.abs().max() > 4:
            break
    return t, n


def while_with_continue(t):
    n = oar.zeros([])
    total = t * 0
    while n < 6:
        n = n + 1
        if (n * t.sum()) % 2 > 1:
            continue
        total = total + t * n
    return total


def while_with_return(t):
    n = oar.zeros([])
    while n < 8:
        n = n + 1
        t = t + 0.5
        if t.sum() > 6:
            return t * 100
    return t


def for_range_of_a_tensor(t):
    y = t * 1
    for _ in range(t.abs().sum().astype("int64")):
        y = y * 1.1
    return y


def for_range_with_the_index(t):
    y = t * 0
    for i in range(oar.full([], 4, "int64") + (t.max() > 0).astype("int64")):
        y = y + t * i
    return y


def for_with_break(t):
    y = t * 1
    for i in range(6):
        y = y + t
        if y.sum() > 10:
            break
    return y


def for_with_continue(t):
    y = t * 1
    for i in range(5):
        if y.sum() * i > 6:
            continue
        y = y + i
    return y


def for_with_return(t):
    for i in range(5):
        t = t * 1.5
        if t.sum() > 12:
            return t - 1
    return t


def for_over_a_tensor(t):
    total = oar.zeros([3])
    for row in t:
        total = total * 0.5 + row
    return total


def for_over_a_tensor_with_a_branch(t):
    total = oar.zeros([3])
    for row in t:
        if row.sum() > 0:
            total = total + row
        else:
            total = total - row * 2
    return total


def and_(t):
    return t * 2 if t.sum() > 0 and t.max() < 2 else t - 1


def or_(t):
    return t * 2 if t.sum() > 3 or t.min() < -0.5 else t - 1


def not_(t):
    return t * 2 if not t.sum() > 0 else t - 1


def and_or_not_mixed(t):
    if not (t.sum() > 0 and t.max() < 2) or t.mean() == 0:
        t = t + 7
    return t


def and_with_python(t, on=True):
    if on and t.sum() > 0:
        t = t * 3
    if not on or t.sum() < 0:
        t = t * 5
    return t


def ternary(t):
    return (t * 2 if t.sum() > 0 else t - 1) + (1 if t.max() > 2 else 2)


def ternary_nested(t):
    return t * 2 if t.sum() > 3 else t * 3 if t.sum() > 0 else t * 4


def chained_comparison(t):
    return t * 2 if -1 < t.mean() < 2 else t


def assert_(t):
    assert t.numel() > 0
    assert t.abs().sum() >= 0, "never"
    return t * 2


def helper_with_a_branch(t):
    return if_else(t) + if_elif_else(t * 2)


def branch_in_a_layer(t, layer=nn.LeakyReLU(0.3)):
    if t.sum() > 0:
        t = layer(t)
    return layer(-t)


def loop_in_a_branch(t):
    if t.sum() > 0:
        while t.sum() < 20:
            t = t * 2
    else:
        for _ in range(3):
            t = t - 1
    return t


def branch_in_a_loop(t):
    n = oar.zeros([])
    while n < 5:
        if t.sum() > n:
            t = t - 0.5
        else:
            t = t + 0.25
        n = n + 1
    return t


WHOLE = [
    if_else, if_alone, if_elif_else, if_nested, if_two_results, if_reads_outside, if_then_shared_tail, if_on_an_element,
    if_on_a_bool_tensor, if_with_an_early_return, if_with_assignments_to_one_variable, while_, while_with_a_counter,
    while_alone, while_with_break, while_with_continue, while_with_return, for_range_of_a_tensor, for_range_with_the_index,
    for_with_break, for_with_continue, for_with_return, for_over_a_tensor, for_over_a_tensor_with_a_branch, and_, or_, not_,
    and_or_not_mixed, and_with_python, ternary, ternary_nested, chained_comparison, assert_, helper_with_a_branch,
    branch_in_a_layer, loop_in_a_branch, branch_in_a_loop,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_program(function, derivatives):
    (counts,) = run_side_by_side(over_values(function), derivatives, rtol=1e-4)
    assert counts["whole"] == over_values.calls and counts["segments"] == counts["eager"] == 0, counts
    assert counts["captures"] <= 6, counts


def test_a_loop_with_a_break_in_a_branch_of_every_turn_is_given_up_soon():
    """The ways double with every turn, and each keeps all objects: the interpreter stops instead of working for minutes."""
    layers = nn.Sequential(nn.Linear(3, 3), nn.LeakyReLU(0.25))

    def function(t):
        for _ in reversed(t):
            t = t.clip(-2, 2).cos()
            if (t > 0.9).any():
                layers(layers[0](t))
                t = t.square()
            elif not t.mean() > 0.7:
                break
        for _, _ in zip(t, t):
            t = oar.concat([t, t], 1)[:, 1:4]
        return layers(oar.stack([row * 0.5 for row in t]))

    x = oar.arange(27, dtype="float32").reshape([9, 3]) / 9
    wanted = function(x)
    assert oar.jit.to_static(function)(x).tolist() == wanted.tolist()
