"""Products of sparse matrices: narrow and very wide ones, any dtype, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.sparse

import oar
from oar import sparse


def random_csr(rng, rows, columns, count, dtype):
    flat = np.unique(rng.integers(0, rows * columns, count))
    values = rng.integers(-4, 5, len(flat)).astype(dtype)  # sums are exact in any order
    return scipy.sparse.csr_matrix((values, (flat // columns, flat % columns)), (rows, columns))


def to_oar(m):
    return sparse.sparse_csr_tensor(m.indptr.astype("int64"), m.indices.astype("int64"), m.data, list(m.shape))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize("sizes", [(30, 40, 50, 300), (60, 20, 100000, 90), (200, 300, 5000, 4000), (5, 3, 64, 0), (1, 1, 65, 1)])
def test_sparse_by_sparse(sizes, dtype):
    rows, inner, columns, count = sizes
    rng = np.random.default_rng(count)
    x, y = random_csr(rng, rows, inner, count, dtype), random_csr(rng, inner, columns, count, dtype)
    found = sparse.matmul(to_oar(x), to_oar(y))
    starts, cols, values = found.crows().numpy(), found.cols().numpy(), found.values().numpy()
    made = scipy.sparse.csr_matrix((values, cols, starts), (rows, columns))
    assert all(np.all(np.diff(cols[a:b]) > 0) for a, b in zip(starts[:-1], starts[1:], strict=True))
    assert abs(made - x @ y).sum() == 0
    # Every place that has a product is stored, zero or not, in order.
    ones = [scipy.sparse.csr_matrix((np.ones(m.nnz), m.indices, m.indptr), m.shape) for m in (x, y)]
    assert len(cols) == (ones[0] @ ones[1]).nnz


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("width", [1, 3, 4, 8, 19, 32])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 90])
def test_masked_matmul(count, width, dtype):
    rng = np.random.default_rng(width)
    mask = random_csr(rng, 20, 30, count, "float32").astype(dtype)
    x, y = (rng.integers(-5, 6, shape).astype(dtype) for shape in ((20, width), (width, 30)))
    found = sparse.masked_matmul(oar.to_tensor(x), oar.to_tensor(y), to_oar(mask))
    rows = np.repeat(np.arange(20), np.diff(mask.indptr))
    np.testing.assert_array_equal(found.values().numpy(), (x @ y)[rows, mask.indices])
