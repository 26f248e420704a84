"""Where a branch or a loop on a tensor cuts a derivative off: captured, the same tensors have the same gradients."""

import numpy as np
import pytest

import oar
from oar.static.nn import cond, while_loop

WEIGHT = oar.to_tensor(np.array([[2.0, 1.0], [-1.0, 0.5]], "float32"), stop_gradient=False)


def in_a_branch(x, n):
    if n > 1:
        x = x.detach()
    return x @ WEIGHT


def before_a_branch(x, n):
    cut = x.detach()
    if n > 1:
        y = cut * 3
    else:
        y = x * x
    return y @ WEIGHT


def both_in_one_branch(x, n):
    cut = x.detach()
    if n > 1:
        y = cut * x
    else:
        y = cut * 3
    return y @ WEIGHT


def a_parameter_in_a_branch(x, n):
    cut = WEIGHT.detach()
    if n > 1:
        y = x @ cut
    else:
        y = x @ WEIGHT
    return y * x


def in_a_range(x, n):
    for _ in range(n):
        x = x.detach()
    return x @ WEIGHT


def in_a_while(x, n):
    while n > 0:
        x = x.detach()
        n = n - 1
    return x @ WEIGHT


def in_a_branch_of_a_loop(x, n):
    for i in range(n):
        if i == 1:
            x = x.detach()
        x = x * x
    return x @ WEIGHT


def beside_the_variable(x, n):
    for _ in range(n):
        x = x.detach() * 2 + x
    return x @ WEIGHT


def in_nested_loops(x, n):
    for _ in range(n):
        k = n
        while k > 1:
            x = x.detach()
            k = k - 1
        x = x * x
    return x @ WEIGHT


def from_outside_the_loop(x, n):
    cut, y = x.detach(), x * 0.5
    for _ in range(n):
        y = y * cut + y.detach() * x
    return y @ WEIGHT


def no_grad_in_a_loop(x, n):
    y = x
    for _ in range(n):
        with oar.no_grad():
            x = x * 2
        y = y * x
    return y @ WEIGHT


def loop_in_no_grad(x, n):
    y = x
    with oar.no_grad():
        for _ in range(n):
            y = y * 2 + x
    return (x * y) @ WEIGHT


def stop_gradient_in_a_loop(x, n):
    for _ in range(n):
        y = x * 2
        y.stop_gradient = True
        x = x * y
    return x @ WEIGHT


def stopped_variable(x, n):
    for _ in range(n):
        x = x * 2
        x.stop_gradient = True
    return x @ WEIGHT


def left_early(x, n):
    while n > 0:
        x = x.detach() * 2
        if n > 1:
            break
        n = n - 1
    return x @ WEIGHT


def a_detached_row(x, n):
    row = x.detach()[0]
    for _ in range(n):
        x = x * row + x[0].detach()
    return x @ WEIGHT


def in_a_list(x, n):
    kept = [x]
    for _ in range(n):
        kept.append(x.detach() * 2)
    return oar.stack(kept).sum(0) @ WEIGHT


def functions_of_tensors(x, n):
    cut = x.detach()
    y = cond(n > 1, lambda: cut * 3, lambda: x * x)
    y, _ = while_loop(lambda y, i: i < n, lambda y, i: [cond(i > 0, lambda: y.detach(), lambda: y * x), i + 1],
                      [y, oar.zeros([], "int64")])
    return y @ WEIGHT


def rows_of_tensors(x, n):
    from oar.static.nn.control_flow import scan

    cut = x.detach()
    last, rows = scan(lambda carried, row: (carried.detach() * row + cut, carried * row), x, oar.stack([x, cut, x]))
    return (last + rows.sum(0)) @ WEIGHT + n


CUTS = [in_a_branch, before_a_branch, both_in_one_branch, a_parameter_in_a_branch, in_a_range, in_a_while,
        in_a_branch_of_a_loop, beside_the_variable, in_nested_loops, from_outside_the_loop, no_grad_in_a_loop,
        loop_in_no_grad, stop_gradient_in_a_loop, stopped_variable, left_early, a_detached_row, in_a_list,
        functions_of_tensors, rows_of_tensors]


def derivatives(function, rounds):
    x = oar.to_tensor(np.array([[0.5, -1.5], [2.0, 0.25]], "float32"), stop_gradient=False)
    y = function(x, oar.to_tensor(rounds))
    first = oar.grad(y.square().sum(), [x, WEIGHT], create_graph=True, allow_unused=True)
    found = [y, *first]
    for gradient in first:
        if gradient is not None and not gradient.stop_gradient:
            found += oar.grad(gradient.square().sum(), [x, WEIGHT], allow_unused=True, retain_graph=True)
        else:
            found += [None, None]
    return [None if t is None else t.numpy() for t in found]


@pytest.mark.parametrize("function", CUTS, ids=lambda f: f.__name__)
def test_first_and_second_derivatives(function):
    captured = oar.jit.to_static(function)
    for rounds in (3, 1, 0, 2):
        wanted, got = derivatives(function, rounds), derivatives(captured, rounds)
        for number, (a, b) in enumerate(zip(wanted, got)):
            if a is None or b is None:  # a gradient of zeros has no meaning that none has not
                assert not np.any(a if b is None else b), (rounds, number)
            else:
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5, err_msg=f"{rounds} rounds, number {number}")
    assert oar.jit.capture_counts(captured)["whole"] == 4


@pytest.mark.parametrize("function", CUTS, ids=lambda f: f.__name__)
def test_tangents(function):
    def tangent(x, n):
        return oar.func.jvp(lambda x: function(x, n), [x], [oar.full_like(x, 0.5)])[1]

    captured = oar.jit.to_static(tangent)
    x = oar.to_tensor(np.array([[0.5, -1.5], [2.0, 0.25]], "float32"))
    for rounds in (3, 1, 0, 2):
        n = oar.to_tensor(rounds)
        np.testing.assert_allclose(captured(x, n).numpy(), tangent(x, n).numpy(), rtol=1e-5, atol=1e-5)
