"""Products of 16-bit floats: sizes around those of tiles, layouts, numbers that are not finite, threads."""

import numpy as np
import pytest

import oar

SIZES = [(2, 2, 8), (1, 300, 70), (290, 1, 70), (5, 300, 64), (16, 16, 32), (17, 33, 65), (31, 47, 1000), (64, 100, 513), (530, 140, 40)]
HALVES = ["bfloat16", "float16"]


@pytest.fixture(params=[True, False], ids=["onednn", "own"], autouse=True)
def library(request):
    """oneDNN where it is faster, and our own tiles everywhere."""
    before = oar.get_flags("onednn")
    oar.set_flags({"onednn": request.param and before["onednn"]})
    yield
    oar.set_flags(before)


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


CONVOLUTIONS = [
    # op, image, kernel, attributes
    ("conv2d", (2, 40, 13, 15), (33, 40, 3, 3), {"padding": 1}),
    ("conv2d", (3, 3, 30, 31), (20, 3, 7, 7), {"stride": 2, "padding": 3}),
    ("conv2d", (2, 48, 12, 11), (42, 16, 3, 3), {"padding": [1, 2], "groups": 3, "dilation": [1, 2]}),
    ("conv2d", (2, 36, 16, 9), (50, 36, 1, 1), {}),
    ("conv2d", (2, 36, 17, 19), (50, 36, 1, 1), {"stride": 3}),
    ("conv2d", (2, 20, 17, 19), (24, 20, 5, 4), {"stride": [3, 2], "padding": [[0, 0], [0, 0], [2, 1], [0, 3]]}),
    ("conv1d", (2, 33, 101), (40, 33, 5), {"padding": 8, "dilation": 4}),
    ("conv3d", (1, 17, 6, 7, 9), (19, 17, 3, 2, 3), {"padding": 1, "stride": [2, 1, 2]}),
    ("conv2d_transpose", (2, 24, 9, 10), (24, 20, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
]


@pytest.mark.parametrize("op, image, kernel, attributes", CONVOLUTIONS)
@pytest.mark.parametrize("biased", [False, True])
def test_convolution(op, image, kernel, attributes, biased):
    """In bfloat16, with gradients, as in float64 with the same numbers; then rounded."""
    rng = np.random.default_rng(4)
    function = getattr(oar.nn.functional, op)
    operands = [halves(rng, image, "bfloat16"), halves(rng, kernel, "bfloat16")]
    if biased:
        count = kernel[1] if op.endswith("transpose") else kernel[0]
        operands.append(halves(rng, (count,), "bfloat16"))
    grad = None
    results = []
    for dtype in ("float64", "bfloat16"):
        given = [t.astype(dtype).detach() for t in operands]
        for t in given:
            t.stop_gradient = False
        out = function(*given, **attributes)
        grad = halves(rng, out.shape, "bfloat16") if grad is None else grad
        results.append([out] + oar.grad([out], given, [grad.astype(dtype)]))
    rounded_before = 2.0**-7 if biased and op.endswith("transpose") else 0  # its bias is added to the rounded result
    for exact, got in zip(*results):
        scale = np.sqrt(np.mean(exact.numpy() ** 2))
        allowed = 2.0**-8 * np.abs(exact.numpy()) + (1e-4 + rounded_before) * scale
        assert np.all(np.abs(as_double(got) - exact.numpy()) <= allowed)
