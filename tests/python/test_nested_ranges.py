"""Loops in loops, both up to numbers that tensors hold: whole programs with the results and gradients of eager mode."""

import numpy as np
import pytest

import oar


def sums(x, n, m):
    total = x
    for i in range(n):
        for j in range(m):
            total = total + x * (i + 1) * (j + 2)
    return total


def triangle(x, n, m):
    total = x * 0
    for i in range(n):
        row = x
        for j in range(i, m):
            row = row * 0.5 + j
        total = total + row
    return total


def leaves_early(x, n, m):
    total = x
    for _ in range(n):
        for j in range(m):
            if total.sum() > 30:
                break
            if j == 1:
                continue
            total = total + x
    return total


def one_after_the_other_in_a_loop(x, n, m):
    total = x
    for _ in range(n):
        for j in range(m):
            total = total + j
        for k in range(n):
            total = total * 1.5 - k
    return total


def three_deep(x, n, m):
    total = x
    for i in range(n):
        for j in range(m):
            for k in range(n):
                total = total + x * (i - j + k)
    return total


def while_around(x, n, m):
    total, count = x, oar.zeros([], "int64")
    while count < n:
        for j in range(m):
            total = total + x * j
        count = count + 1
    return total


FUNCTIONS = [sums, triangle, leaves_early, one_after_the_other_in_a_loop, three_deep, while_around]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_nested_ranges(function):
    captured = oar.jit.to_static(function)
    for n, m in [(2, 3), (3, 1), (0, 2), (2, 0), (4, 4)]:
        results = []
        for call in (function, captured):
            x = oar.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
            y = call(x, oar.to_tensor(n), oar.to_tensor(m))
            y.sum().backward()
            results.append((y.numpy(), x.grad.numpy()))
        for got, want in zip(results[1], results[0]):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert oar.jit.capture_counts(captured) == {"captures": 1, "whole": 5, "segments": 0, "eager": 0}
