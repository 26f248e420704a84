"""Sizes as tensors, `oar.shape(x)[i]`, wherever a size or a number is wanted: one program."""

import pytest
from eager_twin import over_values, run_side_by_side

import oar


def slice_to_a_size(t):
    n = oar.shape(t)[0]
    return t[:n]


def slice_from_a_size(t):
    n = oar.shape(t)[0]
    return t[n - 1:]


def arange_of_a_size(t):
    return oar.arange(oar.shape(t)[0])


def arange_of_a_size_as_float(t):
    return oar.arange(0, oar.shape(t)[0], 1, dtype="float32").unsqueeze(1) * t


def reshape_to_a_product(t):
    s = oar.shape(t)
    return t.reshape([s[0] * s[1]])


def reshape_to_sizes(t):
    s = oar.shape(t)
    return t.reshape([s[1], s[0]]) + oar.reshape(t, [3, s[0]])


def expand_to_a_size(t):
    return oar.expand(t[:1], [oar.shape(t)[0], 3]) + t


def zeros_of_a_size(t):
    return oar.zeros([oar.shape(t)[0], 2]) + t.mean()


def full_of_sizes(t):
    return oar.full([oar.shape(t)[0], oar.shape(t)[1]], 2.0) * t


def zeros_of_a_shape(t):
    return oar.zeros(oar.shape(t)) + t


def reshape_to_a_shape(t):
    return (t.flatten() * 2).reshape(oar.shape(t))


def tile_by_a_size(t):
    return oar.tile(t[:1], [oar.shape(t)[0], 1])


def range_of_a_size(t):
    y = t * 0
    for i in range(oar.shape(t)[0]):
        y = y + t[i]
    return y


def loop_to_a_size(t):
    i = oar.zeros([1], dtype="int32")
    y = t * 0
    while i < oar.shape(t)[0]:
        y = y + t[i]
        i = i + 1
    return y


def branch_on_a_size(t):
    if oar.shape(t)[0] > 3:
        return t * 2
    return t - 1


def random_numbers_of_a_size(t):
    return oar.rand([oar.shape(t)[0], 2]) * 0


def slice_to_half_a_size(t):
    n = oar.shape(t)[0]
    return t[: n // 2 + 1]


def slices_at_half_a_size(t):
    n = oar.shape(t)[1]
    a, b = t[:, : n // 2], t[:, n // 2:]
    return a.sum() + b.mean()


def size_as_a_factor(t):
    return t * oar.shape(t)[0].astype("float32")


def slice_from_a_value(t):
    i = (t.sum() > 0).astype("int64")
    return t[i:]


def slice_between_values(t):
    i = (t.sum() > 0).astype("int64")
    return t[i: i + 1]


def arange_of_a_value(t):
    return oar.arange((t > 0).sum())


WHOLE = [
    slice_to_a_size, slice_from_a_size, arange_of_a_size, arange_of_a_size_as_float, reshape_to_a_product,
    reshape_to_sizes, expand_to_a_size, zeros_of_a_size, full_of_sizes, zeros_of_a_shape, reshape_to_a_shape,
    tile_by_a_size, range_of_a_size, loop_to_a_size, branch_on_a_size, random_numbers_of_a_size, slice_to_half_a_size,
    slices_at_half_a_size, size_as_a_factor,
]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_program(function, derivatives):
    (counts,) = run_side_by_side(over_values(function), derivatives, rtol=1e-4)
    assert counts["whole"] == over_values.calls and counts["segments"] == counts["eager"] == 0, counts
    assert counts["captures"] <= 6, counts


# Right, but in segments: they need a value, or a length, in Python.
RIGHT = [slice_from_a_value, slice_between_values, arange_of_a_value]


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_as_in_eager_mode(function, derivatives):
    run_side_by_side(over_values(function), derivatives, rtol=1e-4)
