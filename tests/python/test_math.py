"""Math, search and products where the registry's NumPy expressions cannot say it: edges, modes, errors."""

import itertools
import math

import numpy as np
import pytest
import scipy.special as sp

import oar


def array(t):
    return t.numpy()


def close(actual, wanted, rtol=1e-12):
    np.testing.assert_allclose(array(actual), wanted, rtol=rtol, atol=1e-300)


# ---- special functions, far out and at their edges

@pytest.mark.parametrize("dtype, rtol", [("float64", 2e-13), ("float32", 4e-7)])
def test_lgamma_everywhere(dtype, rtol):
    x = np.concatenate([np.geomspace(1e-30, 1e30, 4001), -np.linspace(0.01, 20.3, 777), np.linspace(0.9, 2.1, 1001)])
    x = x.astype(dtype)
    x = x[x != np.floor(x)]
    wanted = sp.gammaln(x.astype("float64"))
    actual = array(oar.lgamma(oar.to_tensor(x))).astype("float64")
    # Relative where the function is not near one of its zeros at negative x.
    np.testing.assert_allclose(actual, wanted, rtol=rtol, atol=np.where(x > 0, 1e-14 if dtype == "float64" else 1e-12,
                                                                       1e-13 if dtype == "float64" else 3e-6).max())
    edges = oar.lgamma(oar.to_tensor(np.array([0.0, -1.0, np.inf, np.nan, 1.0, 2.0], dtype)))
    np.testing.assert_array_equal(array(edges), np.array([np.inf, np.inf, np.inf, np.nan, 0, 0], dtype))


def test_digamma_and_polygamma_everywhere():
    x = np.concatenate([np.geomspace(1e-8, 1e8, 999), np.linspace(1.45, 1.47, 201)])
    np.testing.assert_allclose(array(oar.digamma(oar.to_tensor(x))), sp.digamma(x), rtol=2e-13, atol=1e-16)
    for n in (1, 2, 3, 6, 12):
        close(oar.polygamma(oar.to_tensor(x), n), sp.polygamma(n, x), 1e-12)
    negative = np.array([-0.5, -3.3, -70.25, -1000.6])
    np.testing.assert_allclose(array(oar.digamma(oar.to_tensor(negative))), sp.digamma(negative), rtol=1e-12)
    # Trigamma of x below 0, from the recurrence down from a positive place.
    wanted = [float(sp.polygamma(1, v + 1100) + sum(1 / (v + k) ** 2 for k in range(1100))) for v in negative]
    np.testing.assert_allclose(array(oar.polygamma(oar.to_tensor(negative), 1)), wanted, rtol=1e-11)
    near = np.array([-1e-310, -1e-200, -1e-9, -9e-4])
    for n in (1, 2, 3):  # n! / x^(n + 1) and what is left beyond 1
        with np.errstate(over="ignore"):
            wanted = -(-1.0) ** n * sp.gamma(n + 1) * near ** -(n + 1.0) + sp.polygamma(n, 1 + near)
        np.testing.assert_allclose(array(oar.polygamma(oar.to_tensor(near), n)), wanted, rtol=1e-12)
    assert math.isnan(oar.digamma(oar.to_tensor(-2.0)).item())
    poles = np.array([0.0, -0.0, -1.0, -30.0, -np.inf])
    for n in (1, 2, 3, 20, 21):
        np.testing.assert_array_equal(array(oar.polygamma(oar.to_tensor(poles), n)), sp.polygamma(n, poles))


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-14), ("float32", 1e-6)])
def test_erfinv_up_to_the_ends(dtype, rtol):
    tail = 1 - np.geomspace(1e-16 if dtype == "float64" else 1e-7, 0.5, 500)
    x = np.concatenate([tail, -tail, np.linspace(-0.9, 0.9, 501), np.geomspace(1e-30, 1e-3, 50)]).astype(dtype)
    x = x[np.abs(x) < 1]
    np.testing.assert_allclose(array(oar.erfinv(oar.to_tensor(x))), sp.erfinv(x.astype("float64")), rtol=rtol, atol=0)
    ends = oar.erfinv(oar.to_tensor(np.array([1, -1, 1.5, np.nan], dtype)))
    np.testing.assert_array_equal(array(ends), np.array([np.inf, -np.inf, np.nan, np.nan], dtype))


def test_bessel_functions_everywhere():
    x = np.concatenate([np.linspace(-60, 60, 999), [0.0, 300.0, -650.0, 1e5]])
    for name in ("i0", "i1", "i0e", "i1e"):
        x_here = x if name.endswith("e") else x[np.abs(x) < 700]
        np.testing.assert_allclose(array(getattr(oar, name)(oar.to_tensor(x_here))), getattr(sp, name)(x_here), rtol=2e-14,
                                   atol=1e-300)


def test_incomplete_gamma_everywhere():
    a, x = (g.ravel() for g in np.meshgrid([0.01, 0.5, 1, 3, 9.9, 10, 50, 400, 3000], [0, 1e-5, 0.3, 1, 5, 49, 51, 410, 2900, 9e3]))
    at, xt = oar.to_tensor(a), oar.to_tensor(x)
    np.testing.assert_allclose(array(oar.gammainc(at, xt)), sp.gammainc(a, x), rtol=3e-13, atol=1e-300)
    np.testing.assert_allclose(array(oar.gammaincc(at, xt)), sp.gammaincc(a, x), rtol=3e-13, atol=1e-300)
    odd = oar.gammainc(oar.to_tensor([0.0, 0.0, -1.0, 2.0, 2.0]), oar.to_tensor([1.0, 0.0, 1.0, -1.0, math.inf]))
    np.testing.assert_array_equal(array(odd), np.float32([1, np.nan, np.nan, np.nan, 1]))


# ---- arithmetic at its edges

def test_the_upper_incomplete_gamma_where_the_lower_one_is_nearly_1():
    rng = np.random.default_rng(3)
    a, x = 10 ** rng.uniform(-300, 0, 5000), 10 ** rng.uniform(-10, 0.5, 5000)
    np.testing.assert_allclose(oar.gammaincc(oar.to_tensor(a), oar.to_tensor(x)).numpy(), sp.gammaincc(a, x), rtol=1e-11)


def test_infinities_in_logaddexp_and_hypot():
    inf, nan = math.inf, math.nan
    x, y = np.array([inf, -inf, inf, nan, 800.0]), np.array([inf, -inf, -inf, 1.0, 800.0])
    for dtype in ("float32", "float64"):
        a, b = oar.to_tensor(x, dtype=dtype, stop_gradient=False), oar.to_tensor(y, dtype=dtype, stop_gradient=False)
        out = oar.logaddexp(a, b)
        np.testing.assert_allclose(array(out), np.logaddexp(x, y), rtol=1e-7)
        (ga, gb) = oar.grad(out.sum(), [a, b])
        np.testing.assert_array_equal(array(ga)[:3], [0.5, 0.5, 1])
        np.testing.assert_array_equal(array(gb)[:3], [0.5, 0.5, 0])
    np.testing.assert_array_equal(array(oar.hypot(oar.to_tensor([inf, 3e38]), oar.to_tensor([nan, 0.0]))),
                                  np.float32([inf, 3e38]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nextafter_goes_one_step_of_the_dtype(dtype):
    x = oar.to_tensor([0.0, 1.0, -1.0, 1.0, 2.0]).astype(dtype)
    y = oar.to_tensor([1.0, 2.0, 0.0, 1.0, 0.0]).astype(dtype)
    step = oar.nextafter(x, y)
    back = oar.nextafter(step, x)
    assert back.tolist() == x.tolist()
    assert (step != x).tolist() == [True, True, True, False, True]
    eps = oar.finfo(dtype).eps
    assert (step.astype("float64") - x.astype("float64")).tolist()[1] == eps


def test_shifts_beyond_the_width_and_out():
    x = oar.to_tensor([-8, 8, 1], dtype="int32")
    by = oar.to_tensor([40, 40, -1], dtype="int32")
    assert oar.bitwise_right_shift(x, by).tolist() == [-1, 0, 0]
    assert oar.bitwise_right_shift(x, by, is_arithmetic=False).tolist() == [0, 0, 0]
    assert oar.bitwise_left_shift(x, by).tolist() == [0, 0, 0]
    out = oar.zeros([3], "int32")
    assert oar.bitwise_left_shift(x, oar.to_tensor([1, 1, 1], dtype="int32"), out=out) is out
    assert out.tolist() == [-16, 16, 2]


def test_small_functions():
    x = oar.to_tensor([5.0])
    assert oar.increment(x, 2.0) is x and x.tolist() == [7.0]
    with pytest.raises(ValueError, match="one element"):
        oar.increment(oar.ones([2]))
    assert oar.add_n([oar.ones([2])] * 3).tolist() == [3, 3]
    assert oar.broadcast_shape([2, 1, 3], [4, 1]) == [2, 4, 3]
    with pytest.raises(ValueError, match="do not fit"):
        oar.broadcast_shape([2], [3])
    assert oar.cast_(x, "int64") is x and x.dtype == oar.int64
    assert not oar.equal_all(oar.ones([2]), oar.ones([3])).item()
    with pytest.raises(ValueError, match="n is -1"):
        oar.polygamma(oar.ones([1]), -1)


# ---- search

def test_searchsorted_puts_nan_last():
    row = oar.to_tensor([1.0, 2.0, 2.0, math.nan])
    values = oar.to_tensor([math.nan, 2.0, 3.0, math.inf])
    assert oar.searchsorted(row, values).tolist() == [3, 1, 3, 3]
    assert oar.searchsorted(row, values, right=True).tolist() == [4, 3, 3, 3]
    with pytest.raises(ValueError, match="rows for other values"):
        oar.searchsorted(oar.ones([2, 3]), oar.ones([3, 3]))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 1000])
def test_searchsorted_against_numpy(n):
    rng = np.random.default_rng(n)
    row, values = np.sort(rng.integers(0, n, n)), rng.integers(-1, n + 1, 333)
    for right in (False, True):
        actual = oar.searchsorted(oar.to_tensor(row), oar.to_tensor(values), right=right)
        np.testing.assert_array_equal(array(actual), np.searchsorted(row, values, "right" if right else "left"))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("n, high", [(0, 5), (1, 5), (5000, 90), (3000, 10**6)])
def test_unique_with_all_flags(dtype, n, high):
    x = (np.random.default_rng(3).integers(0, high, n) - high // 3).astype(dtype)
    wanted = np.unique(x, True, True, True)
    for flags in itertools.product((False, True), repeat=3):
        found = oar.unique(oar.to_tensor(x), *flags)
        found = list(found) if isinstance(found, tuple) else [found]
        for f, w in zip(found, [wanted[0]] + [w for w, flag in zip(wanted[1:], flags) if flag]):
            np.testing.assert_array_equal(array(f), np.ravel(w))


def test_unique_along_an_axis_and_runs():
    x = np.random.default_rng(0).integers(0, 2, (2, 9, 2))
    for axis in (0, 1, 2, -1):
        wanted = np.unique(x, True, True, True, axis=axis)
        for f, w in zip(oar.unique(oar.to_tensor(x), True, True, True, axis=axis), wanted):
            np.testing.assert_array_equal(array(f), w if w.ndim == 3 else np.ravel(w))
    out, inverse, counts = oar.unique_consecutive(oar.to_tensor([1, 1, 2, 2, 3, 1]), True, True, dtype="int32")
    assert (out.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3, 1], [0, 0, 1, 1, 2, 3], [2, 2, 1, 1])
    assert inverse.dtype == oar.int32
    rows = oar.unique_consecutive(oar.to_tensor([[1, 1], [1, 1], [0, 1]]), axis=0)
    assert rows.tolist() == [[1, 1], [0, 1]]
    assert oar.unique(oar.to_tensor([math.nan, 1.0, math.nan])).shape == [2]


@pytest.mark.parametrize("n", [10, 300_000])
def test_counting_does_not_depend_on_threads(n):
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 512, n), rng.standard_normal(n).astype("float32")
    results = []
    before = oar.get_num_threads()
    for threads in (1, 2):
        oar.set_num_threads(threads)
        results.append(array(oar.bincount(oar.to_tensor(x), oar.to_tensor(w))))
    oar.set_num_threads(before)
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], np.bincount(x, w), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(array(oar.bincount(oar.to_tensor(x), minlength=600)), np.bincount(x, minlength=600))
    weights = oar.to_tensor(w[:10], stop_gradient=False)
    (g,) = oar.grad((oar.bincount(oar.to_tensor(x[:10]), weights) * oar.arange(int(x[:10].max()) + 1)).sum(), [weights])
    np.testing.assert_array_equal(array(g), x[:10])
    with pytest.raises(ValueError, match="holds -3"):
        oar.bincount(oar.to_tensor([1, -3]))


def test_histograms():
    x = np.random.default_rng(2).random(5000)
    t = oar.to_tensor(x)
    np.testing.assert_array_equal(array(oar.histogram(t, 7, min=0.2, max=0.9)), np.histogram(x, 7, (0.2, 0.9))[0])
    np.testing.assert_array_equal(array(oar.histogram(t, 7)), np.histogram(x, 7)[0])
    np.testing.assert_allclose(array(oar.histogram(t, 7, density=True)), np.histogram(x, 7, density=True)[0], rtol=1e-5)
    np.testing.assert_allclose(array(oar.histogram(t, 7, weight=t)), np.histogram(x, 7, weights=x)[0])
    np.testing.assert_allclose(array(oar.histogram_bin_edges(t, 7)), np.histogram_bin_edges(x, 7), rtol=1e-6)
    points = np.random.default_rng(4).standard_normal((500, 3))
    for density in (False, True):
        counts, edges = oar.histogramdd(oar.to_tensor(points), bins=[2, 3, 4], density=density)
        wanted, wanted_edges = np.histogramdd(points, [2, 3, 4], density=density)
        np.testing.assert_allclose(array(counts), wanted, rtol=1e-9)
        for e, w in zip(edges, wanted_edges):
            np.testing.assert_allclose(array(e), w)
    with pytest.raises(ValueError, match="bins is 0"):
        oar.histogram(t, 0)
    with pytest.raises(ValueError, match="cannot be divided into bins"):
        oar.histogram(oar.to_tensor([math.inf, 1.0]), 3)


# ---- order statistics

def test_medians():
    x = np.random.default_rng(5).permutation(24).reshape(2, 3, 4).astype("float32")
    t = oar.to_tensor(x)
    assert oar.median(t).item() == np.median(x)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(array(oar.median(t, axis)), np.median(x, axis))
        np.testing.assert_array_equal(array(oar.median(t, axis, keepdim=True)), np.median(x, axis, keepdims=True))
        low, at = oar.median(t, axis, mode="min")
        np.testing.assert_array_equal(array(low), np.sort(x, axis).take((x.shape[axis] - 1) // 2, axis))
        np.testing.assert_array_equal(np.take_along_axis(x, np.expand_dims(array(at), axis), axis).squeeze(axis), array(low))
    assert oar.median(oar.to_tensor([3, 1, 2, 4])).dtype == oar.float32
    assert oar.median(oar.to_tensor([3, 1, 2, 4]), mode="min").dtype == oar.int64
    x[0, 1, 2] = np.nan
    t = oar.to_tensor(x)
    np.testing.assert_array_equal(array(oar.median(t, -1)), np.median(x, -1))
    assert oar.median(t, -1, mode="min")[1].tolist()[0][1] == 2
    np.testing.assert_array_equal(array(oar.nanmedian(t, [0, 2])), np.nanmedian(x, (0, 2)))
    np.testing.assert_array_equal(array(oar.nanmedian(t, 1, keepdim=True)), np.nanmedian(x, 1, keepdims=True))
    assert math.isnan(oar.nanmedian(oar.to_tensor([math.nan])).item())
    with pytest.raises(ValueError, match="'avg' or 'min'"):
        oar.median(t, mode="max")


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles(way):
    x = np.random.default_rng(6).standard_normal((3, 4, 5))
    t = oar.to_tensor(x)
    for q, axis, keepdim in [(0.3, None, False), ([0.1, 0.75], 1, True), ([0.0, 0.5, 1.0], [0, -1], False), (0.5, 2, True)]:
        wanted = np.quantile(x, q, tuple(axis) if isinstance(axis, list) else axis, method=way, keepdims=keepdim)
        np.testing.assert_allclose(array(oar.quantile(t, q, axis, keepdim, way)), wanted, rtol=1e-12)
    x[1, 2, 3] = np.nan
    t = oar.to_tensor(x)
    assert oar.nanquantile(t, 0.4, []).item() == oar.nanquantile(t, 0.4).item()  # as in Paddle, no axes are all of them
    np.testing.assert_allclose(array(oar.nanquantile(t, 0.4, 1, interpolation=way)), np.nanquantile(x, 0.4, 1, method=way))
    np.testing.assert_allclose(array(oar.quantile(t, 0.4, 1, interpolation=way)), np.quantile(x, 0.4, 1, method=way))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        oar.quantile(t, 1.5)


@pytest.mark.parametrize("way", ["linear", "midpoint"])
def test_quantiles_beside_infinity(way):
    x = oar.to_tensor([[-math.inf, 1.0, 2.0], [1.0, 2.0, math.inf]])
    assert oar.quantile(x, 0.25, 1, interpolation=way).tolist() == [-math.inf, 1.5]
    assert oar.quantile(x, 0.5, 1, interpolation=way).tolist() == [1.0, 2.0]


def test_mode_takes_the_smallest_of_ties_and_its_last_place():
    values, places = oar.mode(oar.to_tensor([[1.0, 2, 2, 1, 3], [5, 4, 4, 5, 0]]))
    assert (values.tolist(), places.tolist()) == ([1, 4], [3, 2])
    assert oar.mode(oar.ones([2, 3]), 0, keepdim=True)[0].shape == [1, 3]


def test_running_extremes_keep_a_nan():
    x = oar.to_tensor([1.0, 3.0, 3.0, math.nan, 5.0])
    values, places = oar.cummax(x)
    assert places.tolist() == [0, 1, 2, 3, 3] and math.isnan(values.tolist()[4])
    assert oar.cummin(x, dtype="int32")[1].dtype == oar.int32


# ---- products and norms

def test_tensordot_forms():
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((3, 4, 2))
    xt, yt = oar.to_tensor(x), oar.to_tensor(y)
    close(oar.tensordot(xt, yt, 2), np.tensordot(x, y, 2))
    close(oar.tensordot(xt, yt, 0), np.tensordot(x, y, 0))
    close(oar.tensordot(xt, yt, [[1, 2], [0, 1]]), np.tensordot(x, y, ([1, 2], [0, 1])))
    square = rng.standard_normal((2, 2, 5))
    # One list for both.
    close(oar.tensordot(oar.to_tensor(square), oar.to_tensor(square), [0, 1]), np.tensordot(square, square, ([0, 1], [0, 1])))
    with pytest.raises(IndexError, match="axes is 4"):
        oar.tensordot(xt, yt, 4)
    with pytest.raises(AssertionError, match="axes is -1"):
        oar.tensordot(xt, yt, -1)


def test_cdist_by_product_and_directly():
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    y[3] = x[2]
    wanted = np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        xt = oar.to_tensor(x, stop_gradient=False)
        out = oar.cdist(xt, oar.to_tensor(y), compute_mode=mode)
        np.testing.assert_allclose(array(out), wanted, atol=1e-7)
        (g,) = oar.grad(out.sum(), [xt])
        ratio = np.where(wanted[..., None] > 1e-6, (x[:, None] - y[None]) / np.maximum(wanted, 1e-6)[..., None], 0)
        np.testing.assert_allclose(array(g), ratio.sum(1), atol=1e-6)
    with pytest.raises(ValueError, match="compute_mode"):
        oar.cdist(oar.ones([2, 2]), oar.ones([2, 2]), compute_mode="fast")
    close(oar.pdist(oar.to_tensor(x), 3.0), [np.sum(np.abs(a - b) ** 3) ** (1 / 3) for a, b in itertools.combinations(x, 2)], 1e-10)


@pytest.mark.parametrize("p", [None, "fro", 0, 1, 2, 2.5, math.inf, -math.inf])
def test_vector_norms(p):
    x = np.random.default_rng(9).standard_normal((3, 4))
    t = oar.to_tensor(x)
    order = 2 if p in (None, "fro") else p
    close(oar.linalg.norm(t, p), np.linalg.norm(x.ravel(), order))
    close(oar.linalg.norm(t, p, axis=1, keepdim=True), np.linalg.norm(x, order, 1, keepdims=True))
    close(t.norm(p, axis=[0]), np.linalg.norm(x, order, 0))


@pytest.mark.parametrize("p", ["fro", 1, -1, math.inf, -math.inf])
def test_matrix_norms(p):
    x = np.random.default_rng(10).standard_normal((3, 4, 5))
    for axis in ([0, 1], [2, 0], [-2, -1]):
        wanted = np.linalg.norm(x, p, tuple(axis))
        close(oar.linalg.matrix_norm(oar.to_tensor(x), p, axis), wanted)
        close(oar.linalg.norm(oar.to_tensor(x), p, axis, keepdim=True), np.linalg.norm(x, p, tuple(axis), keepdims=True))


def test_unknown_norms():
    with pytest.raises(ValueError, match="it can be"):
        oar.linalg.matrix_norm(oar.ones([2, 2]), 3)


def test_covariance_and_correlation():
    rng = np.random.default_rng(11)
    x, f, a = rng.standard_normal((3, 8)), rng.integers(1, 4, 8), rng.random(8)
    t = oar.to_tensor(x)
    close(oar.linalg.cov(t), np.cov(x), 1e-10)
    close(oar.linalg.cov(t, rowvar=False, ddof=False), np.cov(x, rowvar=False, ddof=0), 1e-9)
    close(oar.linalg.cov(t, fweights=oar.to_tensor(f), aweights=oar.to_tensor(a)), np.cov(x, fweights=f, aweights=a), 1e-10)
    close(t.corrcoef(), np.corrcoef(x), 1e-10)
    assert oar.linalg.cov(oar.to_tensor(x[0])).shape == []


def test_products_of_several_matrices():
    rng = np.random.default_rng(12)
    parts = [rng.standard_normal(s) for s in ((7,), (7, 2), (2, 9), (9, 3))]
    close(oar.linalg.multi_dot([oar.to_tensor(p) for p in parts]), np.linalg.multi_dot(parts), 1e-10)
    x = rng.standard_normal((2, 3, 3))
    for n in (0, 1, 2, 5):
        close(oar.linalg.matrix_power(oar.to_tensor(x), n), np.linalg.matrix_power(x, n), 1e-10)


def test_choices():
    x = oar.to_tensor([1, 2, 3])
    assert oar.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert oar.combinations(x, 2, True).shape == [6, 2]
    assert oar.combinations(x, 4).shape == [0, 4]
    assert oar.cartesian_prod([x, oar.to_tensor([5, 6])]).tolist() == [[a, b] for a in (1, 2, 3) for b in (5, 6)]


def test_cross_finds_its_axis():
    with pytest.raises(ValueError, match="no axis of size 3"):
        oar.cross(oar.ones([2, 2]), oar.ones([2, 2]))


def test_prior_boxes_have_all_digits_of_their_ratio():
    images = [oar.zeros([1, 1, 1, 1], "float64"), oar.zeros([1, 1, 9, 9], "float64")]
    box, _ = oar.vision.ops.prior_box(*images, [3.0], aspect_ratios=[0.001])
    assert box[0, 0, 1, 0].item() == pytest.approx(0.5 - 1.5 * 0.001**0.5 / 9, rel=1e-15)
