"""Loops on tensors that are left in several places, by return, break, else and errors: one program each."""

import pytest
from eager_twin import over_values, run_side_by_side

import oar


def return_from_a_while(t):
    n = oar.zeros([])
    while n < 8:
        n = n + 1
        t = t + 0.5
        if t.sum() > 6:
            return t * 100
    return t


def return_from_a_range_of_a_tensor(t):
    y = t * 1
    for i in range(t.abs().sum().astype("int64")):
        y = y * 1.1
        if y.abs().sum() > 4:
            return y - 1
    return y


def returns_in_branches_in_a_loop(t):
    n = oar.zeros([])
    while n < 8:
        n = n + 1
        if t.sum() > 0:
            if n * t.mean() > 2:
                return t * n
            t = t + 0.25
        else:
            t = t - 0.5
            if t.sum() < -6:
                return t
    return t * 2


def two_returns(t):
    n = oar.zeros([])
    while n < 8:
        n = n + 1
        t = t * 1.25
        if t.max() > 4:
            return t * 3
        if t.min() < -4:
            return t * 5
    return t


def return_from_an_endless_loop(t):
    n = oar.zeros([])
    while True:
        n = n + 1
        t = t + 0.5
        if n > 3 or t.sum() > 6:
            return t * n


def return_and_break(t):
    n = oar.zeros([])
    while n < 8:
        n = n + 1
        t = t * 1.25
        if t.max() > 4:
            return t * 3
        if t.min() < -4:
            break
    t = t + 1
    return t


def return_from_a_loop_in_a_branch(t):
    if t.sum() > 0:
        n = oar.zeros([])
        while n < 4:
            n = n + 1
            t = t * 1.25
            if t.max() > 4:
                return t * 3
        t = t + 7
    else:
        t = t - 1
    return t * 2


def return_from_two_loops(t):
    i = oar.zeros([])
    while i < 3:
        j = oar.zeros([])
        while j < 3:
            t = t * 1.25
            if t.abs().sum() > 9:
                return t, i, j
            j = j + 1
        i = i + 1
    return t, i, t.sum()


def return_of_a_number(t):
    i = 0
    while i < 5 and t.sum() < 100:
        t = t * 1.5
        if t.sum() > 12:
            return t, i
        i += 1
    return t, -1


def break_and_else(t):
    n = oar.zeros([])
    while n < 5:
        n = n + 1
        t = t * 1.5
        if t.sum() > 12:
            break
    else:
        t = t - 100
    return t


def return_of_what_the_end_does_not_have(t):
    n = oar.zeros([])
    while n < 5:
        n = n + 1
        t = t * 1.5
        if t.sum() > 12:
            return t.sum()
    return t.mean()


def return_from_a_loop_over_a_list(t):
    for s in [0.5, 1.0, 2.0]:
        t = t * s + 1
        if t.sum() > 12:
            return t - s
    return t


def return_of_nothing(t, box=[]):
    n = oar.zeros([])
    while n < 5:
        n = n + 1
        t = t * 1.5
        if t.sum() > 12:
            return None
    return None


def returns_in_helpers(t):
    a = return_from_a_while(t)
    return a + return_from_a_range_of_a_tensor(t)


def return_of_the_argument(t):
    n = oar.zeros([])
    y = t
    while n < 5:
        n = n + 1
        y = y * 1.5
        if y.sum() > 12:
            return t
    return y


def return_from_a_loop_over_rows(t):
    for i, r in enumerate(t):
        if r.sum() > 0:
            return r * (i + 1)
    return t[0]


def break_from_a_loop_over_rows(t):
    y = oar.zeros([3])
    for r in t:
        if r.sum() > 3:
            break
        y = y + r
    return y


def assert_with_a_message(t):
    assert t.sum() > 0, f"bad {t.shape}"
    return t * 2


def assert_with_a_tensor_as_message(t):
    assert t.sum() > 0, t.sum()
    return t * 2


def assert_in_a_loop(t):
    n = oar.zeros([])
    while n < 3:
        assert t.sum() > -100, "no"
        n = n + 1
    return t


def assert_in_a_branch(t):
    if t.sum() > 0:
        assert t.max() < 100, "large"
        t = t * 2
    return t


def raise_in_a_loop(t):
    n = oar.zeros([])
    while n < 3:
        if t.sum() < -100:
            raise ValueError("no")
        n = n + 1
    return t


def loop_after_an_assert(t):
    n = t.sum()
    assert n >= -2, "negative"
    i = oar.zeros([])
    while i != 2:
        i = i + 1
    return t * i


def branch_without_gradients(t):
    with oar.no_grad():
        if t[0, 0] > 0.2:
            t = t * 2
    return t * 3


def return_without_gradients(t):
    with oar.no_grad():
        if t[0, 0] > 0.2:
            return t * 2
        t = t + 1
        u = t
    return t * 3 + u


def return_of_what_asks_for_its_gradient(t):
    w = t * 2
    with oar.no_grad():
        if t[0, 0] > 0.2:
            return w
        v = w * 2
    return w * 3 + v


def loop_without_gradients(t):
    w = t * 2
    with oar.no_grad():
        n = oar.zeros([])
        while n < t.max():
            w = w * 1.5
            n = n + 1
    return w * 3


def index_after_an_assert(t):
    i = (t.sum() * 10).astype("int64")
    assert (i >= 0).logical_and(i < 2), "no such row"
    return oar.index_select(t, i.reshape([1]), 0)


WHOLE = [
    index_after_an_assert,
    return_from_a_while, return_from_a_range_of_a_tensor, returns_in_branches_in_a_loop, two_returns,
    return_from_an_endless_loop, return_and_break, return_from_a_loop_in_a_branch, return_from_two_loops,
    return_of_a_number, break_and_else, return_of_what_the_end_does_not_have, return_from_a_loop_over_a_list,
    return_of_nothing, returns_in_helpers, return_of_the_argument, return_from_a_loop_over_rows,
    break_from_a_loop_over_rows, assert_with_a_message, assert_with_a_tensor_as_message, assert_in_a_loop,
    assert_in_a_branch, raise_in_a_loop, loop_after_an_assert, branch_without_gradients, return_without_gradients,
    return_of_what_asks_for_its_gradient, loop_without_gradients,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_program(function, derivatives):
    (counts,) = run_side_by_side(over_values(function), derivatives, rtol=1e-4)
    assert counts["whole"] == over_values.calls and counts["segments"] == counts["eager"] == 0, counts
    assert counts["captures"] <= 6, counts
