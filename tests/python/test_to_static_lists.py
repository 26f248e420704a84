"""Lists that branches and loops append to, and loops over the rows of tensors."""

import pytest
from eager_twin import over_values, run_side_by_side, side_by_side

import oar


def append_in_both_branches(t):
    out = []
    if t.sum() > 0:
        out.append(t * 2)
    else:
        out.append(t - 1)
    return oar.stack(out)


def append_in_one_branch(t):
    out = [t]
    if t.sum() > 0:
        out.append(t * 2)
    return oar.concat(out)


def append_in_a_known_number_of_rounds(t):
    out = []
    for i in range(3):
        out.append(t * i)
    return oar.stack(out)


def append_in_branches_in_a_loop(t):
    out = []
    for i in range(3):
        if t.sum() > i:
            out.append(t * i)
        else:
            out.append(t - i)
    return oar.concat(out), out


def append_in_a_while(t):
    out = [t]
    n = oar.zeros([])
    while n < 3:
        out.append(t * n)
        n = n + 1
    return oar.concat(out)


def append_in_a_while_to_nothing(t):
    out = []
    n = oar.zeros([])
    while n < 3 + t.max():
        out.append(t * n)
        n = n + 1
    return oar.stack(out)


def append_in_a_range_of_a_tensor(t):
    out = []
    for i in range(t.abs().sum().astype("int64") + 1):
        out.append(t * i)
    return oar.stack(out, axis=0)


def stack_and_concat_along_axes(t):
    out = []
    n = oar.zeros([])
    while n < 2 + t.max():
        out.append(t * n)
        n = n + 1
    return oar.stack(out, axis=1), oar.concat(out, axis=1), oar.concat(out, -1)


def list_that_may_be_empty(t):
    out = []
    n = oar.zeros([])
    while n < t.max():
        out.append(t * n)
        n = n + 1
    return oar.stack(out)


def append_after_a_loop(t):
    out = [t]
    n = oar.zeros([])
    while n < 2:
        out.append(t * n)
        n = n + 1
    out.append(t + 5)
    return oar.concat(out)


def append_in_a_branch_in_a_loop(t):
    out = [t]
    n = oar.zeros([])
    while n < 3:
        if n * t.mean() > 0.5:
            out.append(t * n)
        n = n + 1
    return oar.concat(out)


def append_in_some_rounds(t):
    out = []
    for i in range(3):
        if t.sum() > i:
            out.append(t * i)
    out.append(t)
    return oar.stack(out)


def grown_list_under_two_names(t):
    out = [t]
    o2 = out
    if t.sum() > 0:
        out.append(t * 2)
    return oar.concat(o2)


def decoder_that_stops(t):
    h = t.mean(0)
    toks = []
    n = oar.zeros([], dtype="int64")
    while n < 5:
        h = (h * 1.5).tanh()
        toks.append(h)
        n = n + 1
        if h.sum() > 1.5:
            break
    return oar.stack(toks), n


def rows(t):
    y = oar.zeros([3])
    for r in t:
        y = y * 0.5 + r
    return y


def rows_with_numbers(t):
    y = oar.zeros([3])
    for i, r in enumerate(t):
        y = y + r * i
    return y


def rows_with_numbers_from_two(t):
    y = oar.zeros([3])
    for i, r in enumerate(t, 2):
        y = y + r * i
    return y


def rows_of_two(t):
    y = oar.zeros([3])
    for a, b in zip(t, t * 2):
        y = y + a * b
    return y


def rows_and_a_list(t):
    y = oar.zeros([3])
    for a, b in zip(t, [1.0, 2.0]):
        y = y + a * b
    return y


def rows_backwards(t):
    y = oar.zeros([3])
    for r in reversed(t):
        y = y * 0.5 + r
    return y


def rows_of_two_with_numbers(t):
    y = oar.zeros([3])
    for i, (a, b) in enumerate(zip(t, t * 2)):
        y = y + a * b * i
    return y


def rows_in_a_comprehension(t):
    return oar.concat([r.unsqueeze(0) * 2 for r in t])


def rows_unpacked(t):
    a, *b = t
    return a + sum(b)


def elements(t):
    y = oar.zeros([])
    for r in t:
        for e in r:
            y = y + e * e
    return y


def length_of_a_grown_list(t):
    out = [t]
    n = oar.zeros([])
    while n < 2:
        out.append(t * n)
        n = n + 1
    return t * len(out)


def items_of_other_sizes(t):
    a, b = [], [t]
    n = oar.zeros([])
    while n < 3:
        a.append(t * n)
        b.append(t[0:1] + n)
        n = n + 1
    return oar.stack(a).sum(0), a


def grown_list_as_result(t):
    out = []
    if t.sum() > 0:
        out.append(t)
    return out


def write_to_a_stack(t):
    out = []
    n = oar.zeros([])
    while n < 2:
        out.append(t * n)
        n = n + 1
    y = oar.stack(out)
    y.add_(oar.ones([]))
    return y, oar.stack(out)


WHOLE = [
    append_in_both_branches, append_in_one_branch, append_in_a_known_number_of_rounds, append_in_branches_in_a_loop,
    append_in_a_while, append_in_a_while_to_nothing, append_in_a_range_of_a_tensor, stack_and_concat_along_axes,
    list_that_may_be_empty, append_after_a_loop, append_in_a_branch_in_a_loop, append_in_some_rounds,
    grown_list_under_two_names, decoder_that_stops, rows, rows_with_numbers, rows_with_numbers_from_two, rows_of_two,
    rows_and_a_list, rows_backwards, rows_of_two_with_numbers, rows_in_a_comprehension, rows_unpacked, elements,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_program(function, derivatives):
    (counts,) = run_side_by_side(over_values(function), derivatives, rtol=1e-4)
    assert counts["whole"] == over_values.calls and counts["segments"] == counts["eager"] == 0, counts
    assert counts["captures"] <= 6, counts


# Right, but in segments: they need a value, or a length, in Python.
RIGHT = [length_of_a_grown_list, items_of_other_sizes, grown_list_as_result, write_to_a_stack]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_as_in_eager_mode(function, derivatives):
    run_side_by_side(over_values(function), derivatives, rtol=1e-4)


@side_by_side
def test_a_list_that_a_branch_extends_and_nobody_reads(static, x):
    @static
    def f(t):
        items = [t, t]
        if (t > 0.9).any():
            items += t
            t = oar.concat([t, t], 1)
        return t

    for fill in (1.0, 0.0, 2.0):
        yield f(x(2, 3, fill=fill))
