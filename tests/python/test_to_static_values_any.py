"""What else functions do with the values of tensors: eager mode's results, effects and errors, however they run."""

import numpy as np
import pytest
from eager_twin import over_values, run_side_by_side

import oar

TOTAL = oar.zeros([])


def printing(t):
    print("sum", t.sum() > 0, (t * 0).astype("int64"))
    return t * 2


def printing_in_a_branch(t):
    if t.sum() > 0:
        print("up")
        return t * 2
    print("down")
    return t - 1


def appending_in_a_branch(t):
    items = [t]
    if t.sum() > 0:
        items.append(t * 2)
    return items, len(items)


def appending_in_a_loop(t):
    items = []
    while t.abs().sum() > 1:
        t = t / 2
        items.append(t.sum())
    return items


def popping_in_a_loop(t):
    stack, total = [t, t * 2, t * 3], oar.zeros([])
    while stack and total < 10:
        total = total + stack.pop().abs().sum()
    return total, len(stack)


def python_numbers_of_branches(t):
    n = 1 if t.sum() > 0 else 2
    return t * n, n


def strings_of_branches(t):
    name = "up" if t.sum() > 0 else "down"
    return t * len(name), name


def other_shapes_of_branches(t):
    return t.sum() if t.mean() > 0 else t.flatten()


def other_dtypes_of_branches(t):
    return t if t.sum() > 0 else t.astype("float64")


def none_of_a_branch(t):
    return t * 2 if t.sum() > 0 else None


def dictionaries_of_branches(t):
    return {"a": t} if t.sum() > 0 else {"a": t * 2, "b": t}


def an_error_in_a_branch(t):
    if t.sum() < -4:
        raise ValueError("too small")
    return t * 2


def assert_that_fails(t):
    assert t.sum() > -4, f"sum of {t.shape[0]} rows"
    return t * 2


def assert_without_a_message(t):
    assert t.sum() > -4
    return t * 2


def a_counter_of_python(t):
    steps = 0
    while t.abs().max() > 0.1:
        t, steps = t / 2, steps + 1
    return t, steps


def while_else(t):
    n = 0
    while n < 4:
        n += 1
        t = t + 1
        if t.sum() > 15:
            break
    else:
        t = t * 100
    return t, n


def for_else(t):
    for i in range(4):
        if t.sum() > 10:
            break
        t = t + 1
    else:
        i = -1
    return t, i


def try_in_a_branch(t):
    try:
        if t.sum() > 0:
            raise KeyError("a")
        return t
    except KeyError:
        return t * 2
    finally:
        print("done")


def values_as_indices(t):
    i = int(t.sum() > 0)
    return t[i] * [1.0, 2.0][i]


def values_as_sizes(t):
    n = int(t.abs().max()) + 1
    return oar.ones([n, 3]) * t[0], t[:n]


def values_of_numpy(t):
    return t * float(np.tanh(t.numpy()).sum())


def a_set_of_values(t):
    return t * len({v for v in t.flatten().tolist() if v > 0})


def comparing_with_in(t):
    return t * 2 if t.sum() in (6.0, 3.0) else t


def bool_of_an_empty_selection(t):
    chosen = t[t > 0]
    return chosen.sum() if chosen.shape[0] else t


def max_of_python(t):
    return max(t.sum(), t.mean()) * t, min([t[0, 0], t[1, 1]]), sorted([t.sum(), t.max()], key=float)


def any_and_all_of_python(t):
    return t * 2 if any(v > 2 for v in t[0]) or all(v < 0 for v in t[1]) else t


def filter_by_value(t):
    return [row * 2 for row in t if row.sum() > 0], sum(1 for row in t if row.max() > 0)


def a_walrus(t):
    if (s := t.sum()) > 0:
        return t * s
    return t - s


def is_none_after_a_branch(t):
    best = None
    for row in t:
        if best is None or row.sum() > best.sum():
            best = row
    return best


def recursion_by_value(t):
    return t if t.abs().max() < 1 else recursion_by_value(t / 2) * 1.5


def unbound_in_one_branch(t):
    if t.sum() > -4:
        y = t * 2
    return y


def deleting_in_a_branch(t):
    y = t * 2
    if t.sum() > 0:
        z = y + 1
        del y
        return z
    return y


def a_format_of_a_value(t):
    return f"{float(t.sum()):.2f}", "%.1f" % t.mean(), str((t > 0).all().item())


def gradients_in_a_branch(t):
    u = t.detach()
    u.stop_gradient = False
    if t.sum() > 0:
        y = (u**3).sum()
    else:
        y = (u**2).sum()
    (g,) = oar.grad(y, u)
    return g * t


def in_place_in_a_branch(t):
    y = t * 1
    if t.sum() > 0:
        y.add_(oar.ones([3]))
    y[0] = y[0] * 2
    return y


def in_place_outside_in_a_branch(t):
    if t.sum() > 0:
        TOTAL.add_(t.detach().sum())
    return t + TOTAL


ANY = [
    printing, printing_in_a_branch, appending_in_a_branch, appending_in_a_loop, popping_in_a_loop,
    python_numbers_of_branches,
    strings_of_branches, other_shapes_of_branches, other_dtypes_of_branches, none_of_a_branch, dictionaries_of_branches,
    an_error_in_a_branch, assert_that_fails, assert_without_a_message, a_counter_of_python, while_else, for_else,
    try_in_a_branch, values_as_indices, values_as_sizes, values_of_numpy, a_set_of_values, comparing_with_in,
    bool_of_an_empty_selection, max_of_python, any_and_all_of_python, filter_by_value, a_walrus, is_none_after_a_branch,
    recursion_by_value, unbound_in_one_branch, deleting_in_a_branch, a_format_of_a_value, gradients_in_a_branch,
    in_place_in_a_branch, in_place_outside_in_a_branch,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", ANY, ids=lambda f: f.__name__)
def test_as_in_eager_mode(function, derivatives):
    run_side_by_side(over_values(function, TOTAL.zero_), derivatives, rtol=1e-4)
