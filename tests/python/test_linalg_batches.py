"""Batches of small matrices, which have loops of their own: backward errors as LAPACK's, for any scale and rank."""

import itertools

import numpy as np
import pytest

import oar

DTYPES = ["float32", "float64", "complex64", "complex128"]
# 13 matrices: groups of 4 and of 8 lanes, and some lanes that are left over.
COUNT = 13


def epsilon(dtype):
    return np.finfo(dtype).eps


def general(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def batches(m, n, dtype):
    """Matrices of all kinds: ordinary, graded, singular, huge, tiny, zero, with equal columns."""
    rng = np.random.default_rng(m * 100 + n)
    x = general(rng, (COUNT, m, n), dtype)
    huge, tiny = (1e30, 1e-30) if dtype in ("float32", "complex64") else (1e250, 1e-250)
    x[1] *= huge
    x[2] *= tiny
    x[3] = x[3] * np.logspace(0, -20, n)
    x[4] = x[4] * np.logspace(0, -20, m)[:, None]
    x[5] = x[5, :, :1] * np.conj(x[5, :1])  # rank 1
    x[6] = 0
    x[7] = np.eye(m, n)
    x[8] = 1
    x[9, :, n // 2:] = 0
    x[10] = np.tri(m, n, dtype=dtype) * x[10]
    x[11] = np.round(4 * x[11].real)
    return x


def wide(x):
    return np.asarray(x, dtype="complex128" if np.iscomplexobj(x) else "float64")


def norms(x):
    """The largest magnitude of each matrix, at least the smallest number."""
    return np.maximum(np.abs(wide(x)).max(axis=(-2, -1), initial=0, keepdims=True), np.finfo("float64").tiny)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def assert_close(found, expected, scale, bound):
    with np.errstate(over="ignore"):
        error = np.abs(wide(found) / scale - wide(expected) / scale)
    assert np.all(error <= bound), error.max(axis=(-2, -1))


def assert_orthonormal(q, bound):
    q = wide(q)
    np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2), atol=bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 16, 32])
def test_lu(n, dtype):
    x = batches(n, n, dtype)
    packed, pivots, info = (t.numpy() for t in oar.linalg.lu(oar.to_tensor(x), get_infos=True))
    scale, bound = norms(x), 8 * n * epsilon(dtype)
    for i in range(COUNT):
        lower, upper = np.tril(wide(packed[i]), -1) + np.eye(n), np.triu(wide(packed[i]))
        rows = list(range(n))
        for j, row in enumerate(pivots[i] - 1):
            rows[j], rows[row] = rows[row], rows[j]
        assert_close(lower @ (upper / scale[i]), wide(x[i])[rows] / scale[i], 1.0, bound)
        parts = np.abs(np.tril(wide(packed[i]), -1))
        assert parts.max(initial=0) <= (1.5 if "complex" in dtype else 1.0) + bound
        zeros = np.flatnonzero(np.diag(packed[i]) == 0)
        assert info.reshape(-1)[i] == (zeros[0] + 1 if len(zeros) else 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 32])
def test_solve_and_inverse(n, dtype):
    rng = np.random.default_rng(n)
    x, y = general(rng, (COUNT, n, n), dtype), general(rng, (COUNT, n, 3), dtype)
    scale = 1e30 if dtype in ("float32", "complex64") else 1e290
    x[1], x[2] = x[1] * scale, x[2] / scale
    y[1], y[2] = y[1] * scale, y[2] / scale
    z = wide(oar.linalg.solve(oar.to_tensor(x), oar.to_tensor(y)).numpy())
    bound = 32 * n * epsilon(dtype)
    residual = np.abs((wide(x) / norms(x)) @ z - wide(y) / norms(x))
    assert np.all(residual <= bound * (np.abs(z).max((-2, -1), keepdims=True) + norms(y) / norms(x)))
    inverse = wide(oar.linalg.inv(oar.to_tensor(x)).numpy())
    sizes = norms(inverse) * norms(x)
    assert np.all(np.abs((wide(x) / norms(x)) @ (inverse * norms(x)) - np.eye(n)) <= bound * sizes)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivots_below_the_smallest_normal_number(dtype):
    tiny = np.finfo(dtype).tiny / 8
    x = np.tile(np.array([[1, 0.5], [0.5, 1]], dtype) * dtype_of(tiny, dtype), (COUNT, 1, 1))
    y = np.tile(np.array([[1.0], [2.0]], dtype) * dtype_of(tiny, dtype), (COUNT, 1, 1))
    z = oar.linalg.solve(oar.to_tensor(x), oar.to_tensor(y)).numpy()
    np.testing.assert_allclose(z, np.tile(np.array([[0.0], [2.0]]), (COUNT, 1, 1)), atol=1e-5)


def dtype_of(value, dtype):
    return np.asarray(value, dtype)


@pytest.mark.parametrize("n", [2, 6, 16])
def test_a_singular_matrix_is_named(n):
    x = np.random.default_rng(0).standard_normal((COUNT, n, n))
    x[9, :, 1] = 0
    for call in (oar.linalg.inv, lambda t: oar.linalg.solve(t, t)):
        with pytest.raises(ValueError, match="matrix 9 of the batch is singular"):
            call(oar.to_tensor(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 16, 32])
def test_determinants(n, dtype):
    x = np.random.default_rng(n).standard_normal((COUNT, n, n)).astype(dtype)
    x[6] = 0
    expected = np.linalg.det(wide(x))
    np.testing.assert_allclose(oar.linalg.det(oar.to_tensor(x)).numpy(), expected, rtol=3e3 * epsilon(dtype), atol=1e-5)
    sign, logarithm = np.linalg.slogdet(wide(x))
    found = oar.linalg.slogdet(oar.to_tensor(x)).numpy()
    np.testing.assert_array_equal(found[0], sign)
    np.testing.assert_allclose(found[1], logarithm, rtol=3e3 * epsilon(dtype), atol=3e3 * epsilon(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 2), (2, 5), (8, 8), (16, 16), (32, 7), (32, 32)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr(shape, mode, dtype):
    x = batches(*shape, dtype)
    q, r = (t.numpy() for t in oar.linalg.qr(oar.to_tensor(x), mode))
    bound = 16 * max(shape) * epsilon(dtype)
    assert_orthonormal(q, bound)
    assert np.all(r == np.triu(r))
    assert_close(wide(q) @ (wide(r) / norms(x)), wide(x) / norms(x), 1.0, bound)
    # The signs are LAPACK's.
    ordinary = [0, 1, 2, 12]
    expected = np.linalg.qr(wide(x[ordinary]) / norms(x[ordinary]), mode)[1]
    assert_close(wide(r[ordinary]) / norms(x[ordinary]), expected, 1.0, 40 * bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (5, 2), (2, 5), (4, 8), (8, 8)])
def test_svd(shape, dtype):
    x = batches(*shape, dtype)
    u, s, vh = (t.numpy() for t in oar.linalg.svd(oar.to_tensor(x), full_matrices=False))
    bound = 16 * max(shape) * epsilon(dtype)
    assert_orthonormal(u, bound)
    assert_orthonormal(adjoint(vh), bound)
    assert np.all(s >= 0) and np.all(s[:, :-1] >= s[:, 1:])
    scaled = wide(s)[:, None] / norms(x)
    assert_close((wide(u) * scaled) @ wide(vh), wide(x) / norms(x), 1.0, bound)
    expected = np.linalg.svd(wide(x) / norms(x), compute_uv=False)
    assert_close(scaled[:, 0], expected, 1.0, bound)
    values = oar.linalg.svdvals(oar.to_tensor(x)).numpy()
    assert_close(wide(values)[:, None] / norms(x), expected[:, None], 1.0, bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 17, 32])
def test_eigh(n, uplo, dtype):
    x = batches(n, n, dtype)
    full = (np.tril(x) if uplo == "L" else np.triu(x)).astype(dtype)
    full = full + adjoint(full) - np.eye(n, dtype=dtype) * np.real(x)
    full = (full.real if "complex" not in dtype else full).astype(dtype)
    full[:, range(n), range(n)] = np.real(x)[:, range(n), range(n)]
    values, vectors = (t.numpy() for t in oar.linalg.eigh(oar.to_tensor(x), uplo))
    bound = 16 * n * epsilon(dtype)
    assert_orthonormal(vectors, bound)
    assert np.all(values[:, :-1] <= values[:, 1:])
    scale = norms(full)
    assert_close(wide(full) / scale @ wide(vectors), wide(vectors) * (wide(values)[:, None] / scale), 1.0, bound)
    expected = np.linalg.eigvalsh(wide(full) / scale)[:, None]
    assert_close(wide(values)[:, None] / scale, expected, 1.0, bound)
    alone = oar.linalg.eigvalsh(oar.to_tensor(x), uplo).numpy()
    assert_close(wide(alone)[:, None] / scale, expected, 1.0, bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig_of_two(dtype):
    rng = np.random.default_rng(2)
    small, large = (1e-30, 1e30) if dtype in ("float32", "complex64") else (1e-250, 1e250)
    special = [[[1, 1], [0, 1]], [[1, 0], [1, 1]], [[0, 1], [-1, 0]], [[0, 0], [0, 0]], [[2, 0], [0, 2]], [[3, 0], [0, -3]],
               [[0, 1], [0, 0]], [[0, small], [1, 0]], [[1, large], [small, 1]], [[1, 1e-7], [1e-7, 1]], [[1, 5], [0, 1 + 1e-6]],
               [[large, large], [-large, large]], [[small, small], [small, -small]], [[1, 1], [-1, 3]], [[1, 2], [-2, -3.0001]]]
    x = np.concatenate([np.array(special).astype(dtype), general(rng, (200, 2, 2), dtype)])
    values, vectors = (wide(t.numpy()) for t in oar.linalg.eig(oar.to_tensor(x)))
    scale, bound = norms(x), 8 * epsilon(dtype)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=bound)
    assert_close(wide(x) / scale @ vectors, vectors * (values[:, None] / scale), 1.0, bound)
    np.testing.assert_array_equal(values, wide(oar.linalg.eigvals(oar.to_tensor(x)).numpy()))
    ordinary, size = x[15:], len(x) - 15
    expected = np.linalg.eigvals(wide(ordinary))
    for i in range(size):
        pairs = np.abs(values[15 + i][:, None] - expected[i][None])
        assert min(pairs[0, 0] + pairs[1, 1], pairs[0, 1] + pairs[1, 0]) <= 2e3 * bound


def of_all_spectra(n, dtype):
    """`batches`, and matrices with equal, conjugate or defective eigenvalues, as they are and turned."""
    rng = np.random.default_rng(n)
    jordan = np.eye(n, k=1) + 2 * np.eye(n)
    turns = np.kron(np.eye(n // 2 + 1), [[1, 2], [-2, 1]])[:n, :n]
    skew = rng.standard_normal((9, n, n))
    special = [jordan, jordan.T, turns, turns + np.triu(np.ones((n, n)), 2), np.roll(np.eye(n), 1, axis=0), np.eye(n, k=1),
               *(skew - np.swapaxes(skew, -1, -2))]
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return np.concatenate([batches(n, n, dtype), np.array(special, dtype=dtype), np.array(q @ special @ q.T, dtype=dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 4, 5, 8, 17, 32])
def test_eig(n, dtype):
    x = of_all_spectra(n, dtype)
    values, vectors = (wide(t.numpy()) for t in oar.linalg.eig(oar.to_tensor(x)))
    scale, bound = norms(x), 16 * n * epsilon(dtype)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=bound)
    bounds = np.full((len(x), 1, 1), bound)
    bounds[4] *= 4  # rows of very different length, which LAPACK's vectors have errors of 60 n epsilon for
    assert_close(wide(x) / scale @ vectors, vectors * (values[:, None] / scale), 1.0, bounds)
    # Values may lie far from the exact ones, but their sum is the trace.
    alone = wide(oar.linalg.eigvals(oar.to_tensor(x)).numpy())
    trace = np.trace(wide(x) / scale, axis1=-2, axis2=-1)
    for found in (values, alone):
        np.testing.assert_allclose(np.sum(found / scale[:, 0], axis=-1), trace, atol=n * bound)
    ordinary = slice(11, 13)
    for found, expected in zip(alone[ordinary], np.linalg.eigvals(wide(x[ordinary]))):
        apart = np.abs(found[:, None] - expected[None]) / scale.max(where=scale < 1e10, initial=0)
        assert np.all(apart.min(axis=0) <= 1e3 * bound) and np.all(apart.min(axis=1) <= 1e3 * bound)
    if not dtype.startswith("complex"):
        np.testing.assert_array_equal(np.sort_complex(values), np.sort_complex(np.conj(values)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [9, 12, 31, 64])
@pytest.mark.parametrize("columns", [1, 8, 13, 40])
def test_triangular_solve(columns, n, dtype):
    rng = np.random.default_rng(n)
    x = (general(rng, (3, n, n), dtype) / n + 2 * np.eye(n)).astype(dtype)
    y = general(rng, (3, n, columns), dtype)
    for upper, transpose, unit in itertools.product([False, True], repeat=3):
        z = wide(oar.linalg.triangular_solve(oar.to_tensor(x), oar.to_tensor(y), upper, transpose, unit).numpy())
        triangle = wide(np.triu(x) if upper else np.tril(x))
        if unit:
            triangle[:, range(n), range(n)] = 1
        triangle = np.swapaxes(triangle, -1, -2) if transpose else triangle
        assert_close(triangle @ z, y, np.abs(z).max(), 16 * n * epsilon(dtype))


@pytest.mark.parametrize("call", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n", [2, 5, 12])
def test_a_matrix_that_is_not_finite_is_named(call, bad, n):
    x = np.random.default_rng(0).standard_normal((COUNT, n, n))
    x[11, 1, 0] = bad
    with pytest.raises(ValueError, match="matrix 11 of the batch has no decomposition"):
        getattr(oar.linalg, call)(oar.to_tensor(x))


@pytest.mark.parametrize("n", [2, 8, 16])
def test_results_do_not_depend_on_the_place_in_the_batch(n):
    x = oar.to_tensor(np.random.default_rng(n).standard_normal((40, n, n)))
    shifted = oar.roll(x, 3, 0)
    calls = [oar.linalg.inv, oar.linalg.det, lambda t: oar.linalg.lu(t)[0], lambda t: oar.linalg.qr(t)[0], oar.linalg.svdvals,
             lambda t: oar.linalg.eigh(t)[1], lambda t: oar.linalg.eig(t)[1], oar.linalg.eigvals]
    for call in calls:
        np.testing.assert_array_equal(oar.roll(call(x), 3, 0).numpy(), call(shifted).numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (3, 5), (12, 10), (9, 12)])
def test_least_squares(shape, dtype):
    rng = np.random.default_rng(5)
    x, y = general(rng, (COUNT, *shape), dtype), general(rng, (COUNT, shape[0], 2), dtype)
    x[4] = x[4, :, :1] * x[4, :1]  # rank 1
    solution, _, rank, values = oar.linalg.lstsq(oar.to_tensor(x), oar.to_tensor(y), rcond=1e-4, driver="gelsd")
    expected = np.linalg.pinv(wide(x), 1e-4) @ wide(y)
    np.testing.assert_allclose(wide(solution.numpy()), expected, atol=2e3 * epsilon(dtype) * np.abs(expected).max())
    np.testing.assert_allclose(values.numpy(), np.linalg.svd(wide(x), compute_uv=False), atol=200 * epsilon(dtype))
    assert rank.tolist() == [1 if i == 4 else min(shape) for i in range(COUNT)]


def test_least_squares_with_infinities_on_the_right():
    """They reach their own column only."""
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((12, 10)), rng.standard_normal((12, 2))
    y[3, 0] = np.inf
    found = oar.linalg.lstsq(oar.to_tensor(x), oar.to_tensor(y))[0].numpy()
    assert not np.isfinite(found[:, 0]).any()
    np.testing.assert_allclose(found[:, 1], np.linalg.lstsq(x, y[:, 1], rcond=None)[0], rtol=1e-8)


@pytest.mark.parametrize("shape", [(2, 2), (17, 1), (12, 10), (9, 12)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_without_a_value_that_counts(shape, dtype):
    """LAPACK takes an rcond of 1 and more for its own limit."""
    rng = np.random.default_rng(7)
    x, y = general(rng, (3, *shape), dtype), general(rng, (3, shape[0], 2), dtype)
    solution, _, rank, values = oar.linalg.lstsq(oar.to_tensor(x), oar.to_tensor(y), rcond=10.0, driver="gelsd")
    assert not solution.numpy().any() and not rank.numpy().any()
    np.testing.assert_allclose(values.numpy(), np.linalg.svd(wide(x), compute_uv=False), atol=200 * epsilon(dtype))
