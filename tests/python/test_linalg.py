"""Linear algebra beyond what the registry's tests cover: large and degenerate matrices, options, errors, threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

import oar
from oar import linalg

DTYPES = ("float32", "float64", "complex64", "complex128")


def tolerance(dtype):
    return 2e-4 if dtype in ("float32", "complex64") else 1e-10


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def definite(shape, dtype, seed=0):
    x = random(shape, dtype, seed)
    return (x @ adjoint(x) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def close(found, wanted, dtype):
    found = found.numpy() if isinstance(found, oar.Tensor) else found
    assert found.shape == np.shape(wanted)
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=tolerance(dtype), atol=tolerance(dtype) * scale)


# Every size that our own loops and the library handle, and batches.
SHAPES = [(n, n) for n in (*range(1, 11), 40)] + [(300, 2, 2), (70, 3, 8, 8), (5, 33, 33)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_square_systems(shape, dtype):
    x = random(shape, dtype) + np.sqrt(shape[-1]).astype(dtype) * np.eye(shape[-1], dtype=dtype)
    y = random((*shape[:-1], 3), dtype, 1)
    t = oar.to_tensor(x)
    close(linalg.inv(t), np.linalg.inv(x), dtype)
    close(linalg.solve(t, oar.to_tensor(y)), np.linalg.solve(x, y), dtype)
    close(linalg.solve(t, oar.to_tensor(adjoint(y)), left=False) @ t, adjoint(y), dtype)
    close(linalg.det(t), np.linalg.det(x), dtype)
    sign, logarithm = np.linalg.slogdet(x)
    close(linalg.slogdet(t), np.stack([sign, logarithm.astype(sign.dtype)]), dtype)
    factors, pivots = linalg.lu(t)
    p, lower, upper = linalg.lu_unpack(factors, pivots)
    close(p @ lower @ upper, x, dtype)
    for trans, matrix in (("N", x), ("T", np.swapaxes(x, -1, -2)), ("C", adjoint(x))):
        close(linalg.lu_solve(oar.to_tensor(y), factors, pivots, trans), np.linalg.solve(matrix, y), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_definite_systems(shape, dtype, upper):
    x = definite(shape, dtype)
    y = random((*shape[:-1], 3), dtype, 1)
    half = np.triu(x) if upper else np.tril(x)  # the other triangle is not read
    factor = linalg.cholesky(oar.to_tensor(half), upper)
    lower = np.linalg.cholesky(x)
    close(factor, adjoint(lower) if upper else lower, dtype)
    close(linalg.cholesky_solve(oar.to_tensor(y), factor, upper), np.linalg.solve(x, y), dtype)
    close(linalg.cholesky_inverse(factor, upper), np.linalg.inv(x), dtype)
    for transpose in (False, True):
        solved = linalg.triangular_solve(oar.to_tensor(x), oar.to_tensor(y), upper, transpose)
        matrix = np.swapaxes(half, -1, -2) if transpose else half
        close(solved, np.linalg.solve(matrix, y), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eigenvalues(shape, dtype):
    x = definite(shape, dtype)
    for half, uplo in ((np.tril(x), "L"), (np.triu(x), "U")):
        values, vectors = (t.numpy() for t in linalg.eigh(oar.to_tensor(half), uplo))
        close(vectors * values[..., None, :] @ adjoint(vectors), x, dtype)
        close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(shape[-1]), shape), dtype)
        close(linalg.eigvalsh(oar.to_tensor(half), uplo), values, dtype)
        assert np.all(np.diff(values) >= 0)
    general = random(shape, dtype, 3)
    values, vectors = (t.numpy() for t in linalg.eig(oar.to_tensor(general)))
    assert values.dtype.name == vectors.dtype.name == ("complex128" if dtype in ("float64", "complex128") else "complex64")
    close(general @ vectors, vectors * values[..., None, :], dtype)
    close(np.sort_complex(linalg.eigvals(oar.to_tensor(general)).numpy().astype("complex128").round(3)),
          np.sort_complex(values.astype("complex128").round(3)), "complex64")


def leading_elements(vectors):
    sizes = np.abs(vectors) ** 2
    rows = np.argmax(sizes >= 0.999 * sizes.max(-2, keepdims=True), -2, keepdims=True)
    return np.take_along_axis(vectors, rows, -2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_leading_elements_are_positive(dtype):
    for vectors in (linalg.eigh(oar.to_tensor(definite((4, 9, 9), dtype)))[1], linalg.eig(oar.to_tensor(random((5, 5), dtype)))[1],
                    linalg.svd(oar.to_tensor(random((3, 7, 5), dtype)))[0]):
        leading = leading_elements(vectors.numpy())
        assert np.all(leading.real > 0) and np.all(leading.imag == 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 5), (7, 7), (40, 12), (12, 40), (200, 3, 2), (4, 20, 30)], ids=str)
def test_rectangular_factors(shape, dtype):
    x = random(shape, dtype)
    m, n = shape[-2:]
    t = oar.to_tensor(x)
    for full in (False, True):
        u, s, vh = (f.numpy() for f in linalg.svd(t, full))
        assert u.shape[-1] == (m if full else min(m, n)) and vh.shape[-2] == (n if full else min(m, n))
        close(u[..., :, :min(m, n)] * s[..., None, :] @ vh[..., :min(m, n), :], x, dtype)
        close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])), dtype)
    close(linalg.svdvals(t), np.linalg.svd(x, compute_uv=False), dtype)
    close(linalg.pinv(t), np.linalg.pinv(x), dtype)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(t, mode)
        close(q @ r, x, dtype)
        expected = np.linalg.qr(x, mode)
        close(r, expected[1], dtype)
        close(q[..., :, :min(m, n)], expected[0][..., :, :min(m, n)], dtype)
    close(linalg.qr(t, "r"), np.linalg.qr(x, "r"), dtype)
    factors, pivots, infos = linalg.lu(t, get_infos=True)
    p, lower, upper = linalg.lu_unpack(factors, pivots)
    close(p @ lower @ upper, x, dtype)
    assert pivots.dtype.name == infos.dtype.name == "int32" and not np.any(infos.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_matrix_exp(n, scale, dtype):
    x = (random((3, n, n), dtype) * scale / n).astype(dtype)
    wanted = np.stack([scipy.linalg.expm(a.astype("complex128" if dtype == "complex128" else "float64")) for a in x])
    found = linalg.matrix_exp(oar.to_tensor(x)).numpy()
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found / size, wanted / size, atol=3e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype,accuracy", [("float32", 1e-6), ("float64", 1e-15)])
@pytest.mark.parametrize("size", [0.0, 1e-5, 0.01, 0.1, 0.5, 1.0, 3.0, 9.0, 40.0])
def test_matrix_exp_beside_formulas(size, dtype, accuracy):
    """Sizes that need polynomials of every degree: a rotation, and a matrix whose powers do not grow as its norm does."""
    rotation = oar.to_tensor(np.array([[0.0, -size], [size, 0.0]], dtype))
    wanted = [[np.cos(size), -np.sin(size)], [np.sin(size), np.cos(size)]]
    squarings = max(1.0, size)
    np.testing.assert_allclose(linalg.matrix_exp(rotation).numpy(), wanted, rtol=0, atol=4 * squarings * accuracy)
    far = 1e6
    skew = linalg.matrix_exp(oar.to_tensor(np.array([[size, far], [0.0, -size]], dtype))).numpy()
    slope = np.sinh(size) / size if size else 1.0
    np.testing.assert_allclose(skew, [[np.exp(size), far * slope], [0.0, np.exp(-size)]],
                               rtol=20 * squarings * accuracy, atol=accuracy * np.exp(size))


def test_matrix_exp_of_large_numbers():
    """Squares that would overflow."""
    for dtype, large in (("float32", 1e30), ("float64", 1e250)):
        found = linalg.matrix_exp(oar.to_tensor(np.array([[0.0, large], [0.0, 0.0]], dtype))).numpy()
        np.testing.assert_array_equal(found, np.array([[1.0, large], [0.0, 1.0]], dtype))
        found = linalg.matrix_exp(oar.to_tensor(np.array([[-large, 0.0], [0.0, -large]], dtype))).numpy()
        np.testing.assert_array_equal(found, np.zeros((2, 2), dtype))


def test_matrix_exp_of_a_number():
    assert linalg.matrix_exp(oar.to_tensor(2.0, dtype="float64")).item() == pytest.approx(np.exp(2.0), rel=1e-15)


def test_reflections():
    x = random((7, 4), "complex128")
    (reflections, tau), r = scipy.linalg.qr(x, mode="raw")
    q = scipy.linalg.qr(x)[0]
    close(linalg.householder_product(oar.to_tensor(reflections), oar.to_tensor(tau)), q[:, :4], "complex128")
    given = [oar.to_tensor(np.ascontiguousarray(a)) for a in (reflections, tau)]
    for left, transpose, size in ((True, False, 4), (True, True, 7), (False, False, 7), (False, True, 4)):
        y = random((size, 3) if left else (3, size), "complex128", 1)
        factor = q[:, :4].T if transpose else q[:, :4]
        close(linalg.ormqr(*given, oar.to_tensor(y), left, transpose), factor @ y if left else y @ factor, "complex128")


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (2, 9, 5)], ids=str)
def test_least_squares(shape, driver):
    x, y = random(shape, "float64"), random((*shape[:-1], 2), "float64", 1)
    solution, residuals, rank, values = linalg.lstsq(oar.to_tensor(x), oar.to_tensor(y), driver=driver)
    close(solution, np.linalg.pinv(x) @ y, "float64")
    if shape[-2] > shape[-1] and driver in ("gels", "gelsd", "gelss"):
        close(residuals, np.sum((x @ solution.numpy() - y) ** 2, -2), "float64")
    else:
        assert residuals.shape == [0]
    if driver == "gels":
        assert rank.shape == [0]
    else:
        assert np.all(rank.numpy() == min(shape[-2:])) and rank.dtype.name == "int32"
    if driver in ("gelsd", "gelss"):
        close(values, np.linalg.svd(x, compute_uv=False), "float64")
    else:
        assert values.shape == [0]


def test_least_squares_of_deficient_rank():
    x = random((6, 2), "float64") @ random((2, 4), "float64", 1)
    y = random((6, 2), "float64", 2)
    solution, residuals, rank, values = linalg.lstsq(oar.to_tensor(x), oar.to_tensor(y), rcond=1e-10, driver="gelsd")
    close(solution, np.linalg.pinv(x, 1e-10) @ y, "float64")
    assert rank.item() == 2 and residuals.shape == [0] and values.shape == [4]


def test_rank():
    x = np.stack([np.diag([3.0, 2.0, 0.0]), np.diag([1.0, 1e-3, 1e-20]), np.zeros((3, 3))])
    t = oar.to_tensor(x)
    assert linalg.matrix_rank(t).tolist() == [2, 2, 0]
    assert linalg.matrix_rank(t, tol=0.5).tolist() == [2, 1, 0]
    assert linalg.matrix_rank(t, tol=oar.to_tensor([2.5, 1e-4, 0.0])).tolist() == [1, 2, 0]
    assert linalg.matrix_rank(t, hermitian=True).tolist() == [2, 2, 0]
    assert linalg.matrix_rank(t, atol=2.5).tolist() == [1, 0, 0]
    assert linalg.matrix_rank(t, rtol=0.1).tolist() == [2, 1, 0]
    assert linalg.matrix_rank(t, atol=1e-30).tolist() == [2, 3, 0]
    assert linalg.matrix_rank(oar.zeros([2, 0, 3])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="either tol"):
        linalg.matrix_rank(t, tol=1.0, atol=1.0)


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, np.inf, -np.inf])
def test_condition_and_norms(p):
    x = random((2, 4, 4), "float64")
    close(linalg.cond(oar.to_tensor(x), p), np.linalg.cond(x, p), "float64")
    wide = random((3, 2, 5), "float64")
    norm = "fro" if p is None else p
    close(linalg.matrix_norm(oar.to_tensor(wide), norm, [2, 0]), np.linalg.norm(wide, norm, (2, 0)), "float64")
    close(linalg.matrix_norm(oar.to_tensor(wide), norm, [0, 1], True), np.linalg.norm(wide, norm, (0, 1), True), "float64")


def test_powers():
    x = random((2, 3, 3), "float64")
    for n in (-3, -1, 0, 1, 4):
        close(linalg.matrix_power(oar.to_tensor(x), n), np.linalg.matrix_power(x, n), "float64")


def test_low_rank():
    oar.seed(3)
    x = random((2, 30, 4), "float64") @ random((2, 4, 12), "float64", 1)
    for t, q in ((oar.to_tensor(x), 4), (oar.to_tensor(np.swapaxes(x, -1, -2).copy()), 6)):
        u, s, v = linalg.svd_lowrank(t, q)
        assert u.shape[-1] == s.shape[-1] == v.shape[-1] == q
        close(u * s.unsqueeze(-2) @ v.transpose([0, 2, 1]), t.numpy(), "float32")
        close(s[:, :4], np.linalg.svd(t.numpy(), compute_uv=False)[:, :4], "float64")
    mean = x.mean(-2, keepdims=True)
    u, s, v = linalg.pca_lowrank(oar.to_tensor(x), 4)
    close(s, np.linalg.svd(x - mean, compute_uv=False)[:, :4], "float64")
    again = linalg.svd_lowrank(oar.to_tensor(x), 4, M=oar.to_tensor(mean))[1]
    close(again, s.numpy(), "float64")
    for call, text in ((lambda: linalg.svd_lowrank(oar.to_tensor(x), 13), "q is 13"),
                       (lambda: linalg.pca_lowrank(oar.to_tensor(x), niter=-1), "niter is -1")):
        with pytest.raises(ValueError, match=text):
            call()


# ---- Degenerate matrices -------------------------------------------------------------------------


def leaf(x):
    t = oar.to_tensor(x)
    t.stop_gradient = False
    return t


def slope(function, x, along, step=1e-5):
    return (float(function(x + step * along)) - float(function(x - step * along))) / (2 * step)


def test_gradient_at_equal_eigenvalues():
    """A function of the matrix itself has a derivative there: the projection on the double eigenvalue's space."""
    rotation = scipy.linalg.qr(random((3, 3), "float64"))[0]
    x = rotation @ np.diag([1.0, 1.0, 4.0]) @ rotation.T
    weight = random((3, 3), "float64", 1)
    t = leaf(x)
    values, vectors = linalg.eigh(t)
    pair = vectors[:, :2]
    ((pair @ pair.transpose([1, 0])) * oar.to_tensor(weight)).sum().backward()
    along = definite((3, 3), "float64", 2)

    def projected(a):
        v = np.linalg.eigh(a)[1][:, :2]
        return np.sum(v @ v.T * weight)
    # The two values are equal up to rounding only; what rounding adds cancels for a function of the space.
    assert float((t.grad.numpy() * along).sum()) == pytest.approx(slope(projected, x, along), rel=1e-4, abs=1e-6)
    t = leaf(np.eye(3) * 2)  # exactly equal
    linalg.eigvalsh(t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.eye(3), atol=1e-12)


def test_gradient_at_zero_singular_values():
    x = random((5, 2), "float64") @ random((2, 4), "float64", 1)
    t = leaf(x)
    u, s, vh = linalg.svd(t)
    s[:2].sum().backward()
    full = np.linalg.svd(x)
    np.testing.assert_allclose(t.grad.numpy(), full[0][:, :2] @ full[2][:2], atol=1e-9)
    t = leaf(np.zeros((3, 2)))
    linalg.svdvals(t).sum().backward()
    assert np.all(np.isfinite(t.grad.numpy()))


@pytest.mark.parametrize("hermitian", [False, True])
def test_gradient_of_pinv_at_fixed_rank(hermitian):
    left = random((4, 2), "float64")
    weight = random((4, 4), "float64", 1)

    def value(b):
        return np.sum(np.linalg.pinv(b @ b.T, 1e-8) * weight)
    t = leaf(left)
    (linalg.pinv(t @ t.transpose([1, 0]), 1e-8, hermitian) * oar.to_tensor(weight)).sum().backward()
    along = random((4, 2), "float64", 2)
    assert float((t.grad.numpy() * along).sum()) == pytest.approx(slope(value, left, along), rel=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 9, 20])
def test_gradient_of_det_of_a_singular_matrix(n):
    x = random((n, max(n - 1, 1)), "float64") @ random((max(n - 1, 1), n), "float64", 1) * (n > 1)
    t = leaf(x)
    linalg.det(t).backward()
    along = random((n, n), "float64", 2)
    assert float((t.grad.numpy() * along).sum()) == pytest.approx(slope(np.linalg.det, x, along), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("n", [4, 9])
def test_cofactors_of_singular_matrices(n):
    """Against the determinants of the parts; all are 0 if two ranks are missing."""
    x = random((3, n, n - 1), "complex128") @ random((3, n - 1, n), "complex128", 1)
    x[1] = random((n, n), "complex128", 2)
    x[2] = np.ones((n, n))
    minors = [[np.linalg.det(np.delete(np.delete(x, i, 1), j, 2)) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
    found = oar._C.ops.cofactors(oar.to_tensor(x)).numpy()
    np.testing.assert_allclose(found, np.moveaxis(minors, -1, 0), rtol=1e-9, atol=1e-9)
    assert np.abs(found[0]).max() > 1e-3 and np.abs(found[2]).max() < 1e-12


def test_gradients_of_symmetric_matrices_are_symmetric():
    x = definite((4, 4), "complex128")
    for function in (lambda t: linalg.cholesky(t).abs().sum(), lambda t: linalg.cholesky(t, True).abs().sum(),
                     lambda t: (linalg.eigh(t)[1][0].abs() * linalg.eigh(t)[0]).sum(), lambda t: linalg.eigvalsh(t)[0]):
        t = leaf(x)
        function(t).backward()
        np.testing.assert_allclose(t.grad.numpy(), adjoint(t.grad.numpy()), atol=1e-12)


# ---- Errors --------------------------------------------------------------------------------------


def batch_with(bad, n):
    return np.stack([np.eye(n), np.eye(n), bad])


@pytest.mark.parametrize("n", [2, 12])
def test_matrices_without_factors(n):
    singular, indefinite = np.ones((n, n)), -np.eye(n)
    nan = np.full((n, n), np.nan)
    for call, bad, text in (
            (linalg.cholesky, indefinite, "not positive definite"), (linalg.inv, singular, "singular"),
            (lambda t: linalg.solve(t, t), singular, "singular"), (linalg.eigh, nan, "infinities or NaN"),
            (linalg.eigvalsh, nan, "infinities or NaN"), (linalg.svd, nan, "infinities or NaN"),
            (linalg.svdvals, nan, "infinities or NaN"), (linalg.eig, nan, "infinities or NaN")):
        with pytest.raises(ValueError, match=f"the matrix .*{text}"):
            call(oar.to_tensor(bad))
        with pytest.raises(ValueError, match=f"matrix 2 of the batch .*{text}"):
            call(oar.to_tensor(batch_with(bad, n)))
    assert linalg.det(oar.to_tensor(singular)).item() == pytest.approx(0, abs=1e-12)
    sign, logarithm = linalg.slogdet(oar.to_tensor(np.zeros((n, n)))).tolist()
    assert sign == 0 and logarithm == -np.inf
    infos = linalg.lu(oar.to_tensor(np.zeros((2, n, n))), get_infos=True)[2]
    assert infos.tolist() == [1, 1]


@pytest.mark.parametrize("call, text", [
    (lambda: linalg.cholesky(oar.ones([3])), "at least two axes"),
    (lambda: linalg.inv(oar.ones([2, 3])), "square"),
    (lambda: linalg.solve(oar.eye(3), oar.ones([2, 1])), "must have 3 rows"),
    (lambda: linalg.solve(oar.eye(3), oar.ones([2])), "must have 3 elements"),
    (lambda: linalg.solve(oar.eye(3), oar.ones([3, 2]), left=False), "must have 3 columns"),
    (lambda: linalg.triangular_solve(oar.eye(3), oar.ones([2, 1])), "as many rows"),
    (lambda: linalg.cholesky_solve(oar.ones([2, 1]), oar.eye(3)), "as many rows"),
    (lambda: linalg.eigh(oar.eye(2), "X"), 'UPLO is "X"'),
    (lambda: linalg.qr(oar.eye(2), "full"), "mode is 'full'"),
    (lambda: linalg.lu(oar.eye(2), pivot=False), "pivot is False"),
    (lambda: linalg.lu_solve(oar.eye(2), oar.eye(2), oar.to_tensor([1, 9], dtype="int32")), "a pivot is 9"),
    (lambda: linalg.lu_solve(oar.eye(2), oar.eye(2), oar.to_tensor([1, 2], dtype="int32"), "X"), 'trans is "X"'),
    (lambda: linalg.lu_unpack(oar.eye(2), oar.to_tensor([1], dtype="int32")), "must have shape"),
    (lambda: linalg.householder_product(oar.ones([2, 3]), oar.ones([3])), "more columns than rows"),
    (lambda: linalg.ormqr(oar.ones([3, 2]), oar.ones([2]), oar.ones([3, 2])), "does not fit the factor left"),
    (lambda: linalg.lstsq(oar.ones([3, 2]), oar.ones([2, 1])), "as many rows"),
    (lambda: linalg.lstsq(oar.ones([3, 2]), oar.ones([3, 1]), driver="x"), "driver is 'x'"),
    (lambda: linalg.cond(oar.ones([3, 2]), 1), "square"),
    (lambda: linalg.cond(oar.eye(3), 3), "p is 3"),
    (lambda: linalg.matrix_norm(oar.eye(3), 3), "p is 3"),
])
def test_wrong_arguments(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("name", ["cholesky", "inverse", "det", "eigh", "svd"])
def test_integers_are_rejected(name):
    with pytest.raises(TypeError, match="float"):
        getattr(oar._C.ops, name)(oar.to_tensor([[1, 0], [0, 1]]))


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=120)


def test_without_lapack():
    """Small matrices work, larger ones are an error that says what to install."""
    code = """
import oar
assert oar.linalg.inv(oar.eye(8) * 2)[0, 0].item() == 0.5
assert oar.linalg.cholesky(oar.eye(3) * 4)[0, 0].item() == 2
try:
    oar.linalg.inv(oar.eye(9))
except NotImplementedError as error:
    assert 'no_such_library.so cannot be loaded' in str(error) and 'libopenblas0-openmp' in str(error), error
else:
    raise SystemExit('no error')
"""
    done = run_python(code, OAR_LAPACK="no_such_library.so")
    assert done.returncode == 0, done.stderr


def test_import_loads_no_library():
    done = run_python("import oar\noar.linalg.inv(oar.eye(4))\nprint('openblas' in open('/proc/self/maps').read())")
    assert done.stdout.strip() == "False", done.stderr


# ---- Threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(300, 300), (257, 600), (600, 257)], ids=str)
def test_lu_in_blocks(shape, dtype):
    """Sizes that are factored by blocks of columns, and where the first pivot is zero."""
    x = random(shape, dtype)
    factors, pivots, info = linalg.lu(oar.to_tensor(x), get_infos=True)
    wanted, rows = scipy.linalg.lu_factor(x)
    np.testing.assert_array_equal(pivots.numpy() - 1, rows)
    np.testing.assert_allclose(factors.numpy(), wanted, atol=np.abs(wanted).max() * (1e-4 if dtype == "float32" else 1e-12))
    assert info.numpy().item() == 0
    x[:, 200] = 0
    factors, _, info = linalg.lu(oar.to_tensor(x), get_infos=True)
    assert info.numpy().item() == 201
    assert factors.numpy()[200, 200] == 0


def test_threads():
    """A batch is shared by threads; the results are those of one thread, to the bit."""
    x = oar.to_tensor(definite((40, 24, 24), "float64"))
    calls = (linalg.cholesky, linalg.inv, linalg.eigvalsh, linalg.svdvals, linalg.matrix_exp, lambda t: linalg.qr(t)[1])
    before = oar.get_num_threads()
    try:
        oar.set_num_threads(1)
        alone = [f(x).numpy() for f in calls]
        oar.set_num_threads(3)
        for one, f in zip(alone, calls):
            np.testing.assert_array_equal(f(x).numpy(), one)
    finally:
        oar.set_num_threads(before)


def test_many_threads_of_the_user():
    from concurrent.futures import ThreadPoolExecutor
    x = oar.to_tensor(definite((3, 30, 30), "float64"))
    wanted = linalg.inv(x).numpy()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: linalg.inv(x).numpy(), range(24)):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_captured_training_step():
    """A Gaussian log density by its Cholesky factor, eagerly and as one program."""
    x, root = oar.to_tensor(random((5, 3), "float64")), oar.to_tensor(random((3, 3), "float64", 1))

    def loss(root, x):
        factor = linalg.cholesky(root @ root.transpose([1, 0]) + oar.eye(3, dtype="float64"))
        z = linalg.triangular_solve(factor, x.transpose([1, 0]), upper=False)
        return (z * z).sum() / 2 + 5 * oar.log(linalg.diagonal(factor)).sum()

    def gradient(root, x):
        root = oar.assign(root)
        root.stop_gradient = False
        return oar.grad(loss(root, x), [root])[0]
    np.testing.assert_array_equal(oar.jit.capture(gradient, [root, x])(root, x).numpy(), gradient(root, x).numpy())


def test_fp8_product():
    x, y = (oar.to_tensor(np.array(a, "float32")).astype("float8_e4m3fn") for a in ([[1, 2], [3, 4]], [[1, 0], [2, 1]]))
    found = linalg.fp8_fp8_half_gemm_fused(x, y, transpose_y=True, bias=oar.to_tensor([-5.0, 0.0]), scale=2.0, act="relu")
    assert found.dtype.name == "float16" and found.tolist() == [[0.0, 8.0], [1.0, 20.0]]
    with pytest.raises(TypeError, match="float8"):
        linalg.fp8_fp8_half_gemm_fused(oar.eye(2), y)


def test_reflections_of_real_vectors_by_complex_numbers():
    rng = np.random.default_rng(3)
    x, tau, y = rng.standard_normal((4, 2)), rng.standard_normal(2) + 1j * rng.standard_normal(2), rng.standard_normal((2, 3))
    q = np.eye(4, dtype=complex)
    for i in range(2):
        v = np.concatenate([np.zeros(i), [1], x[i + 1:, i]])
        q = q @ (np.eye(4) - tau[i] * np.outer(v, v))
    found = oar.linalg.householder_product(oar.to_tensor(x), oar.to_tensor(tau))
    np.testing.assert_allclose(found.numpy(), q[:, :2], rtol=1e-10)
    found = oar.linalg.ormqr(oar.to_tensor(x), oar.to_tensor(tau), oar.to_tensor(y))
    np.testing.assert_allclose(found.numpy(), q[:, :2] @ y, rtol=1e-10)
