"""Products with sparse tensors: values against NumPy and SciPy, gradients against dense products."""

import numpy as np
import pytest
import scipy.sparse

import oar
from oar import sparse
from test_sparse import RNG, leaf, some
from test_sparse_functions import both, compare


class Dense:
    """A dense result where ``compare`` expects a sparse one."""

    def __init__(self, t):
        self.t = t

    def to_dense(self):
        return self.t


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize(("left", "right"), [([4, 5], [5, 3]), ([2, 4, 5], [2, 5, 3]), ([4, 5], [5, 1]), ([4, 5], [5, 70])])
def test_sparse_times_dense(left, right, kind):
    x, y = some(left), RNG.standard_normal(right)
    t, dense = both(x, kind)
    b, db = leaf(y), leaf(y)
    made = sparse.matmul(t, b)
    assert made.is_dense() and made.shape == [*left[:-1], right[-1]]
    compare(Dense(made), oar.matmul(dense, db), [(t, dense), (b, db)])


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_dense_times_sparse(kind):
    x, y = RNG.standard_normal((3, 4)), some([4, 5])
    a, da = leaf(x), leaf(x)
    t, dense = both(y, kind)
    made = a @ t
    assert made.is_dense()
    compare(Dense(made), da @ dense, [(a, da), (t, dense)])


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize(("left", "right"), [([4, 5], [5, 3]), ([2, 4, 5], [2, 5, 3])])
def test_sparse_times_sparse(left, right, kind):
    x, y = some(left), some(right)
    (a, da), (b, db) = both(x, kind), both(y, kind)
    made = sparse.matmul(a, b)
    assert made._kind == a._kind
    assert made.nnz() == (np.abs(x) @ np.abs(y) > 0).sum()
    compare(made, da @ db, [(a, da), (b, db)])


def test_transposed_operands():
    x, y = some([5, 4]), RNG.standard_normal((3, 5))
    t = oar.to_tensor(x).to_sparse_csr()
    np.testing.assert_allclose(oar.matmul(t, oar.to_tensor(y), True, True).numpy(), x.T @ y.T)


def test_repeated_places_are_summed():
    t = sparse.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], [2, 3], stop_gradient=False)
    y = oar.arange(6, dtype="float32").reshape([3, 2])
    np.testing.assert_allclose(sparse.matmul(t, y).numpy(), t.detach().to_dense().numpy() @ y.numpy())
    square = sparse.matmul(t, sparse.transpose(t, [1, 0]))
    np.testing.assert_allclose(square.to_dense().numpy(), [[4.0, 0.0], [0.0, 16.0]])


def test_unsorted_columns_of_csr():
    t = sparse.sparse_csr_tensor([0, 3, 4], [2, 0, 1, 2], [1.0, 2.0, 3.0, 4.0], [2, 3])
    dense = np.array([[2.0, 3.0, 1.0], [0.0, 0.0, 4.0]])
    np.testing.assert_allclose(sparse.matmul(t, oar.eye(3)).numpy(), dense)
    other = oar.to_tensor([[0.0, 1.0, 0.0], [5.0, 0.0, 6.0]]).to_sparse_csr()
    np.testing.assert_allclose(sparse.add(t, other).to_dense().numpy(), dense + other.to_dense().numpy())
    product = sparse.matmul(t, sparse.transpose(t, [1, 0]))
    np.testing.assert_allclose(product.to_dense().numpy(), dense @ dense.T)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_mv(kind):
    x, v = some([4, 5]), RNG.standard_normal(5)
    t, dense = both(x, kind)
    b, db = leaf(v), leaf(v)
    compare(Dense(sparse.mv(t, b)), oar.mv(dense, db), [(t, dense), (b, db)])


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("batch", [[], [2]])
def test_masked_matmul(batch, kind):
    x, y = RNG.standard_normal((*batch, 4, 3)), RNG.standard_normal((*batch, 3, 5))
    mask = some([*batch, 4, 5])
    t, _ = both(mask, kind)
    a, da, b, db = leaf(x), leaf(x), leaf(y), leaf(y)
    made = sparse.masked_matmul(a, b, t.detach())
    assert made._kind == t._kind and made.nnz() == (mask != 0).sum()
    compare(made, (da @ db) * oar.to_tensor((mask != 0).astype("float64")), [(a, da), (b, db)])


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_addmm(kind):
    x, y, z = some([4, 5]), RNG.standard_normal((5, 3)), RNG.standard_normal((4, 3))
    t, dense = both(x, kind)
    b, db, c, dc = leaf(y), leaf(y), leaf(z), leaf(z)
    made = sparse.addmm(c, t, b, 2.0, 3.0)
    compare(Dense(made), oar.addmm(dc, dense, db, 2.0, 3.0), [(t, dense), (b, db), (c, dc)])
    (t, dense), (b, db), (c, dc) = both(x, kind), both(some([5, 3]), kind), both(some([4, 3]), kind)
    compare(sparse.addmm(c, t, b, 2.0, 3.0), oar.addmm(dc, dense, db, 2.0, 3.0), [(t, dense), (b, db), (c, dc)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "complex128", "int32", "int64"])
def test_dtypes(dtype):
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    x, y = np.round(some([4, 5])).astype(dtype), np.round(some([5, 3])).astype(dtype)
    if dtype.startswith("complex"):
        x = x * (1 + 2j)
    for kind in ("coo", "csr"):
        t = oar.to_tensor(x).to_sparse_csr() if kind == "csr" else oar.to_tensor(x).to_sparse_coo(2)
        np.testing.assert_allclose(sparse.matmul(t, oar.to_tensor(y)).numpy(), x @ y, rtol=tolerance)
        np.testing.assert_allclose(
            sparse.masked_matmul(oar.to_tensor(x), oar.to_tensor(y), oar.ones([4, 3]).to_sparse_csr()).to_dense().numpy(),
            x @ y, rtol=tolerance)  # fmt: skip


def test_complex_gradients():
    x, y = some([3, 4]) + 1j * some([3, 4]), some([4, 2], 2.0) + 1j * some([4, 2], 2.0)
    for kind in ("coo", "csr"):
        (t, dense), b, db = both(x, kind), leaf(y), leaf(y)
        (sparse.matmul(t, b).abs() ** 2).sum().backward()
        ((dense @ db).abs() ** 2).sum().backward()
        np.testing.assert_allclose(b.grad.numpy(), db.grad.numpy())
        np.testing.assert_allclose(t.grad.values().numpy(), sparse.mask_as(dense.grad, t.detach()).values().numpy())


def test_higher_derivatives():
    x, y = some([3, 4]), RNG.standard_normal((4, 2))
    for kind in ("coo", "csr"):
        found = []
        for sparse_one in (True, False):
            t, dense = both(x, kind)
            a, b = (t if sparse_one else dense), leaf(y)
            out = (oar.matmul(a, b) ** 3).sum()
            ga, gb = oar.grad(out, [a, b], create_graph=True)
            ga = ga.to_dense() if sparse_one else sparse.mask_as(ga, t.detach()).to_dense()
            second = oar.grad((ga**2).sum() + (gb**2).sum(), [a, b])
            found.append([second[0].to_dense() if sparse_one else sparse.mask_as(second[0], t.detach()).to_dense(), second[1]])
        for made, expected in zip(*found, strict=True):
            np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_large_products_against_scipy():
    a = scipy.sparse.random(700, 500, 0.02, "csr", random_state=1)
    b = scipy.sparse.random(500, 600, 0.02, "csr", random_state=2)
    x, y = (sparse.sparse_csr_tensor(m.indptr, m.indices, m.data, m.shape) for m in (a, b))
    np.testing.assert_allclose(sparse.matmul(x, y).to_dense().numpy(), (a @ b).toarray(), rtol=1e-12)
    for width in (1, 7, 40):
        dense = RNG.standard_normal((500, width))
        for t in (x, x.to_sparse_coo(2)):
            np.testing.assert_allclose(sparse.matmul(t, oar.to_tensor(dense)).numpy(), a @ dense, rtol=1e-10, atol=1e-12)
        tall = RNG.standard_normal((700, width))
        flipped = oar.matmul(x, oar.to_tensor(tall), True)
        np.testing.assert_allclose(flipped.numpy(), a.T @ tall, rtol=1e-10, atol=1e-12)


def test_empty():
    t = sparse.sparse_coo_tensor(np.zeros((2, 0), "int64"), np.zeros(0), [3, 4])
    assert t.nnz() == 0 and t.to_dense().numpy().sum() == 0
    assert sparse.matmul(t, oar.ones([4, 2], dtype="float64")).tolist() == [[0.0, 0.0]] * 3
    assert sparse.matmul(t.to_sparse_csr(), sparse.transpose(t, [1, 0]).to_sparse_csr()).nnz() == 0
    assert sparse.add(t, t).nnz() == 0


def test_mistakes():
    t = oar.eye(3).to_sparse_csr()
    for call, error, text in (
        (lambda: sparse.matmul(t, oar.ones([4, 2])), ValueError, r"\[3, 3\] cannot be multiplied by y of shape \[4, 2\]"),
        (lambda: sparse.matmul(t, oar.ones([3, 2], dtype="float64")), TypeError, "must have one"),
        (lambda: sparse.matmul(oar.ones([3, 3]), oar.ones([3, 3])), TypeError, r"\[matmul\]"),
        (lambda: sparse.mv(t, oar.ones([3, 1])), ValueError, "a vector"),
        (lambda: sparse.masked_matmul(oar.ones([3, 2]), oar.ones([3, 3]), t), ValueError, "shape of mask"),
        (lambda: sparse.masked_matmul(oar.ones([3, 3]), oar.ones([3, 3]), oar.ones([3, 3])), TypeError, "sparse"),
        (lambda: sparse.addmm(t, t, oar.ones([3, 3])), TypeError, "both"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()


def test_pca_lowrank():
    if not hasattr(oar.linalg, "svd"):
        pytest.skip("oar.linalg.svd is not available")
    x = some([12, 3]) @ some([3, 8], 1.0)
    for center in (False, True):
        u, s, v = sparse.pca_lowrank(oar.to_tensor(x).to_sparse_csr(), 3, center)
        expected = x - x.mean(0) if center else x
        np.testing.assert_allclose((u * s @ v.T).numpy(), expected, atol=1e-8)
    with pytest.raises(ValueError, match="q is 9"):
        sparse.pca_lowrank(oar.to_tensor(x).to_sparse_csr(), 9)


def test_rows_with_far_more_columns_than_elements():
    """No memory for each of the columns: there are 2 ** 40."""
    rng, width = np.random.default_rng(0), 2**40
    places = np.sort(rng.choice(2**40, 12, replace=False))
    y = np.zeros([4, 12])
    crows, cols, values = [0], [], []
    for row in range(4):
        chosen = np.sort(rng.choice(12, 5, replace=False))
        y[row, chosen] = rng.standard_normal(5)
        cols += list(places[chosen])
        values += list(y[row, chosen])
        crows.append(len(cols))
    x = rng.standard_normal([3, 4])
    left = oar.to_tensor(x).to_sparse_csr()
    right = sparse.sparse_csr_tensor(crows, cols, values, [4, width], dtype="float64")
    product = sparse.matmul(left, right)
    assert product.shape == [3, width]
    found = np.zeros([3, 12])
    for row in range(3):
        begin, end = product.crows().tolist()[row : row + 2]
        at = product.cols().numpy()[begin:end]
        assert (np.diff(at) > 0).all()
        found[row, np.searchsorted(places, at)] = product.values().numpy()[begin:end]
    np.testing.assert_allclose(found, x @ y, rtol=1e-12, atol=1e-12)

    parts = [oar.to_tensor(t) for t in (np.array([0, 3, 1]), np.array([2, 1, 1]))]
    matrix = [right.crows(), right.cols(), right.values()]
    dots = oar._C.ops.csr_dots(*parts, *matrix, *matrix, [width])
    np.testing.assert_allclose(dots.numpy(), [y[0] @ y[2], y[3] @ y[1], y[1] @ y[1]], rtol=1e-12)
