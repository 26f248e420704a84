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


def lengthy_csr(rng, columns, dtype):
    """Rows of every length up to 70, empty ones, one longer than a block of the kernel; columns in any order, some twice."""
    lengths = np.concatenate([np.arange(71), [0, 0, 2500, 1, 1024, 1025], rng.integers(0, 40, 300)])
    cols = rng.integers(0, columns, lengths.sum())
    values = rng.integers(-4, 5, len(cols)).astype(dtype)
    return np.append(0, np.cumsum(lengths)), cols, values


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "complex64", "complex128"])
@pytest.mark.parametrize("width", [1, 16, 33, 64, 100])
def test_rows_of_any_length(width, dtype, index):
    rng, columns = np.random.default_rng(width), 90
    wide = dtype if dtype.startswith(("int", "complex")) else "float64"
    crows, cols, values = lengthy_csr(rng, columns, wide)
    y = rng.integers(-3, 4, (columns, width)).astype(wide)
    rows = np.repeat(np.arange(len(crows) - 1), np.diff(crows))
    wanted = np.zeros((len(crows) - 1, width), wide)
    np.add.at(wanted, rows, values[:, None] * y[cols])
    ops, given = oar._C.ops, [oar.to_tensor(a).astype(dtype) for a in (values, y)]
    places = [oar.to_tensor(a.astype(index)) for a in (crows, rows, cols)]
    for made in (ops.csr_matmul(places[0], places[2], *given), ops.coo_matmul(places[1], places[2], *given, [len(wanted)])):
        if dtype.endswith("16"):  # the sums are exact in float32, and rounded once
            np.testing.assert_array_equal(made.astype("float64").numpy(), oar.to_tensor(wanted).astype(dtype).astype("float64").numpy())
        else:
            np.testing.assert_array_equal(made.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 32, 80])
def test_the_same_bits_for_any_threads(width, dtype):
    rng = np.random.default_rng(1)
    crows, cols, values = lengthy_csr(rng, 500, dtype)
    values, y = rng.standard_normal(len(values)).astype(dtype), rng.standard_normal((500, width)).astype(dtype)
    rows = np.repeat(np.arange(len(crows) - 1), np.diff(crows))
    found = []
    for threads in (1, 2, 3):
        oar.set_num_threads(threads)
        given = [oar.to_tensor(a) for a in (cols, values, y)]
        found += [oar._C.ops.csr_matmul(oar.to_tensor(crows), *given).numpy(),
                  oar._C.ops.coo_matmul(oar.to_tensor(rows), *given, [len(crows) - 1]).numpy()]  # fmt: skip
    assert all(a.tobytes() == found[0].tobytes() for a in found)


def test_numbers_that_are_not_finite_stay_in_their_row():
    t = sparse.sparse_csr_tensor([0, 1, 3, 3, 4], [0, 1, 2, 0], [1.0, np.inf, -np.inf, 2.0], [4, 3])
    made = sparse.mv(t, oar.to_tensor([1.0, 1.0, 1.0])).numpy()
    np.testing.assert_array_equal(made, [1.0, np.nan, 0.0, 2.0])


@pytest.mark.parametrize("bad", [-1, 90, 2**40])
def test_positions_are_checked_anywhere(bad):
    rng, ops = np.random.default_rng(0), oar._C.ops
    crows, cols, values = lengthy_csr(rng, 90, "float32")
    rows = np.repeat(np.arange(len(crows) - 1), np.diff(crows))
    y = oar.ones([90, 1])
    for place in (0, 2000, len(cols) - 1):
        wrong = cols.copy()
        wrong[place] = bad
        with pytest.raises(IndexError, match="out of range"):
            ops.csr_matmul(*map(oar.to_tensor, (crows, wrong, values)), y)
        wrong = rows.copy()
        wrong[place] = bad if bad < 0 else bad + len(crows)
        with pytest.raises(IndexError, match="out of range"):
            ops.coo_matmul(*map(oar.to_tensor, (wrong, cols, values)), y, [len(crows) - 1])
        indices = np.stack([rows, cols])
        indices[1, place] = bad
        with pytest.raises(IndexError, match="along axis 1"):
            ops.ravel_indices(oar.to_tensor(indices), [len(crows), 90])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (7, 0), (1, 1), (3, 40), (40, 3), (30000, 20000), (40000, 9)])
def test_merge_sorted(sizes, threads):
    oar.set_num_threads(threads)
    rng = np.random.default_rng(sum(sizes))
    x, y = (np.unique(rng.integers(0, 60000, n)) for n in sizes)
    out, x_places, y_places = (t.numpy() for t in oar._C.ops.merge_sorted(oar.to_tensor(x), oar.to_tensor(y)))
    wanted = np.union1d(x, y)
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(x_places, np.searchsorted(wanted, x))
    np.testing.assert_array_equal(y_places, np.searchsorted(wanted, y))


@pytest.mark.parametrize("shape", [[7], [1, 1], [4000, 4000], [3, 1, 5, 700], [2**31 - 1], [2, 2**30 - 1], [1, 2**31 - 1], [2**20, 2**20, 2**20],
                                   [2**33, 5], [5, 2**33]])  # fmt: skip
def test_positions_and_coordinates(shape):
    rng = np.random.default_rng(3)
    total = int(np.prod(np.array(shape, object)))
    edges = [0, total - 1, total // 2, max(shape[-1] - 1, 0), min(shape[-1], total - 1), total // shape[-1] // 2 * shape[-1]]
    flat = np.unique(np.concatenate([rng.integers(0, total, 1500), edges]))
    coordinates = np.stack(np.unravel_index(flat, shape))
    np.testing.assert_array_equal(oar._C.ops.unravel_indices(oar.to_tensor(flat), shape).numpy(), coordinates)
    np.testing.assert_array_equal(oar._C.ops.ravel_indices(oar.to_tensor(coordinates), shape).numpy(), flat)
