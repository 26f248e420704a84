"""``to_static(full_graph=True)``: what Python derives from the values of tensors stays in tensors."""

import copy

import numpy as np
import pytest
from static_functions import switched_on  # noqa: F401 - a fixture

import oar
from oar.jit import capture_counts, to_static
from oar.jit.api import sot_mode_guard


def whole(function):
    return to_static(function, full_graph=True)


@pytest.mark.parametrize("kind, dtype", [(int, "int32"), (float, "float32"), (bool, "bool")])
@pytest.mark.parametrize("shape", [[], [1], [3, 2]])
def test_conversions_are_casts(kind, dtype, shape):
    static = whole(lambda x: kind(x))
    given = np.linspace(-1.5, 2.5, int(np.prod(shape))).reshape(shape).astype("float64")
    got = static(oar.to_tensor(given))
    assert got.dtype == getattr(oar, dtype)
    np.testing.assert_array_equal(got.numpy(), given.astype(dtype))
    assert capture_counts(static)["whole"] == 1


def test_a_converted_tensor_decides_a_branch():
    def f(x):
        return x * 2 if bool(x.sum()) else x - 1

    static = whole(f)
    for values in ([1.0, 2.0], [1.0, -1.0]):
        np.testing.assert_array_equal(static(oar.to_tensor(values)).numpy(), f(oar.to_tensor(values)).numpy())
    assert capture_counts(static) == {"captures": 1, "whole": 2, "segments": 0, "eager": 0}


def steps(n):
    count = 0
    while n > 1:
        n = n // 2
        count += 1
    return count


def rounds(x):
    last = {"a": [1]}
    for i in range(oar.shape(x)[0]):
        last["a"][0] = i
    return last["a"][0]


def chosen(x):
    held = [1]
    if x.sum() > 2:
        held[0] = 2
    else:
        held[0] = 3
    return held[0]


@pytest.mark.parametrize("function, values, expected", [
    (steps, 9, 3), (rounds, [5, 6, 7], 2), (chosen, [1, 2], 2), (chosen, [1, 1], 3)])  # fmt: skip
def test_numbers_that_depend_on_tensors(function, values, expected):
    got = whole(function)(oar.to_tensor(values))
    assert isinstance(got, oar.Tensor) and got.dtype == oar.int64 and got.item() == expected
    plain = to_static(function)(oar.to_tensor(values))
    assert type(plain) is int and plain == expected


def test_numbers_that_do_not_depend_on_tensors_stay_numbers():
    assert whole(lambda x, n: (x, int(n)))(oar.ones([1]), 3.7)[1] == 3


def test_the_default_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("ENABLE_FALL_BACK", raising=False)
    with sot_mode_guard(False):
        inside = to_static(steps)
    outside = to_static(steps)
    assert isinstance(inside(oar.to_tensor(9)), oar.Tensor) and outside(oar.to_tensor(9)) == 3
    monkeypatch.setenv("ENABLE_FALL_BACK", "False")
    assert isinstance(to_static(steps)(oar.to_tensor(9)), oar.Tensor)
    assert to_static(steps, full_graph=False)(oar.to_tensor(9)) == 3


def test_methods_and_copies_keep_the_choice():
    class Net(oar.nn.Layer):
        @to_static(full_graph=True)
        def forward(self, x):
            return float(x)

    assert Net()(oar.to_tensor(2)).dtype == oar.float32
    plain = whole(lambda x: float(x))
    assert copy.deepcopy(plain)(oar.to_tensor(2)).dtype == oar.float32
