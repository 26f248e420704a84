"""Products of 16-bit floats: sizes around those of tiles, layouts, numbers that are not finite, threads."""

import numpy as np
import pytest

import oar

SIZES = [(2, 2, 8), (5, 300, 64), (16, 16, 32), (17, 33, 65), (31, 47, 1000), (64, 100, 513), (530, 140, 40)]
HALVES = ["bfloat16", "float16"]


def halves(rng, shape, dtype):
    return oar.to_tensor(rng.standard_normal(shape).astype("float32")).astype(dtype)


def as_double(t):
    return t.astype("float32").numpy().astype("float64")


def assert_rounded(got, exact, sizes, dtype):
    """Within one rounding of the result, and what float32 sums may lose."""
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    assert np.all(np.abs(as_double(got) - exact) <= unit * np.abs(exact) + 2.0**-21 * sizes)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("turn_x, turn_y", [(False, False), (True, False), (False, True), (True, True)])
def test_product(m, n, k, turn_x, turn_y, dtype):
    rng = np.random.default_rng(m + n + k)
    x = halves(rng, (k, m) if turn_x else (m, k), dtype)
    y = halves(rng, (n, k) if turn_y else (k, n), dtype)
    a, b = as_double(x), as_double(y)
    a, b = a.T if turn_x else a, b.T if turn_y else b
    assert_rounded(oar.matmul(x, y, turn_x, turn_y), a @ b, np.abs(a) @ np.abs(b), dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_linear_and_batches(dtype):
    rng = np.random.default_rng(1)
    x, w, b = halves(rng, (3, 20, 70), dtype), halves(rng, (70, 45), dtype), halves(rng, (45,), dtype)
    exact = as_double(x) @ as_double(w) + as_double(b)
    sizes = np.abs(as_double(x)) @ np.abs(as_double(w)) + np.abs(as_double(b))
    assert_rounded(oar.nn.functional.linear(x, w, b), exact, sizes, dtype)
    y = halves(rng, (3, 70, 20), dtype)
    exact = as_double(x) @ as_double(y)
    assert_rounded(oar.bmm(x, y), exact, np.abs(as_double(x)) @ np.abs(as_double(y)), dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_neither_axis_dense(dtype):
    rng = np.random.default_rng(2)
    x, y = halves(rng, (40, 2 * 64), dtype)[:, ::2], halves(rng, (64, 2 * 50), dtype)[:, ::2]
    exact = as_double(x) @ as_double(y)
    assert_rounded(oar.matmul(x, y), exact, np.abs(as_double(x)) @ np.abs(as_double(y)), dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_not_finite(dtype):
    x, y = np.ones((32, 64), "float32"), np.ones((64, 48), "float32")
    x[3, 5], x[4, 6], y[7, 9] = np.inf, np.nan, -np.inf
    got = oar.matmul(oar.to_tensor(x).astype(dtype), oar.to_tensor(y).astype(dtype)).astype("float32").numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize("dtype", HALVES)
def test_same_bits_with_any_number_of_threads(dtype):
    rng = np.random.default_rng(3)
    x, y = halves(rng, (300, 1100), dtype), halves(rng, (1100, 260), dtype)
    before, seen = oar.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            oar.set_num_threads(threads)
            seen.append(oar.matmul(x, y).astype("float32").numpy())
    finally:
        oar.set_num_threads(before)
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])
