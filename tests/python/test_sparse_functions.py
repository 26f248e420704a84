"""Functions of sparse tensors against the same functions of dense ones, with gradients."""

import numpy as np
import pytest
import scipy.sparse

import oar
from oar import sparse
from test_sparse import RNG, leaf, some


def both(array, kind, axes=None):
    """A sparse leaf and a dense one with the same elements."""
    dense = leaf(array)
    t = oar.to_tensor(array)
    t = t.to_sparse_csr() if kind == "csr" else t.to_sparse_coo(axes or array.ndim)
    t.stop_gradient = False
    return t, dense


def compare(made, expected, pairs):
    """Values, then gradients at the places that the sparse tensors hold."""
    dense = made.to_dense()
    np.testing.assert_allclose(dense.numpy().reshape(expected.shape), expected.numpy(), rtol=1e-9, atol=1e-12)
    weights = oar.to_tensor(RNG.standard_normal(expected.shape))
    (dense.reshape(expected.shape) * weights).sum().backward()
    (expected * weights).sum().backward()
    for t, reference in pairs:
        if t.is_sparse():
            at = sparse.mask_as(reference.grad, t.detach())
            np.testing.assert_allclose(t.grad.values().numpy(), at.values().numpy(), rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_allclose(t.grad.numpy(), reference.grad.numpy(), rtol=1e-9, atol=1e-12)


UNARY = ["sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "tanh", "square", "log1p", "expm1", "abs", "neg",
         "deg2rad", "rad2deg", "sqrt"]  # fmt: skip


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, kind):
    x = np.clip(some([3, 5]) / 10, -0.9, 0.9)
    x = np.abs(x) if name == "sqrt" else x
    t, dense = both(x, kind)
    made = getattr(sparse, name)(t)
    assert made._kind == t._kind and made.nnz() == t.nnz()
    # Where x is 0 the dense gradient of sqrt is infinite; only the places that are held count.
    held = oar.to_tensor(x != 0)
    expected = oar.where(held, getattr(oar, name)(oar.where(held, dense, oar.ones_like(dense) * 0.5)), oar.zeros([]).astype("float64"))
    compare(made, expected, [(t, dense)])
    assert getattr(oar, name)(t.detach())._kind == t._kind  # the op itself, too


def test_unary_on_repeated_places_sums_them_first():
    t = sparse.sparse_coo_tensor([[1, 1]], [1.0, 2.0], [3])
    assert sparse.square(t).to_dense().tolist() == [0.0, 9.0, 0.0]
    assert sparse.pow(t, 2).to_dense().tolist() == [0.0, 9.0, 0.0]
    assert sparse.neg(t).to_dense().tolist() == [0.0, -3.0, 0.0]


def test_any_function_that_keeps_zeros():
    t = oar.to_tensor([0.0, -1.25, 2.5]).to_sparse_coo(1)
    for function in (oar.floor, oar.sign, oar.nn.functional.gelu, oar.nn.functional.silu, oar.erf):
        np.testing.assert_allclose(function(t).to_dense().numpy(), function(t.to_dense()).numpy())
    assert (t * 2).to_dense().tolist() == [0.0, -2.5, 5.0] and (t / 2).is_sparse_coo()
    assert (2 * t).is_sparse_coo() and (-t).is_sparse_coo() and oar.maximum(t, t * 2).is_sparse_coo()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    x = (some([3, 4]) + 1j * some([3, 4])).astype(dtype)
    t = oar.to_tensor(x).to_sparse_coo(2)
    np.testing.assert_allclose(sparse.sin(t).to_dense().numpy(), np.sin(x), rtol=1e-4)
    np.testing.assert_allclose(sparse.abs(t).to_dense().numpy(), np.abs(x), rtol=1e-5)
    np.testing.assert_allclose(sparse.add(t, t).to_dense().numpy(), x + x)


@pytest.mark.parametrize("kind", ["coo", "csr"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_binary(name, kind):
    for shape in ([4, 5], [2, 3, 4]):
        x, y = some(shape), some(shape)
        (a, da), (b, db) = both(x, kind), both(y, kind)
        made = getattr(sparse, name)(a, b)
        assert made._kind == a._kind and made.nnz() == ((x != 0) | (y != 0)).sum()
        compare(made, getattr(oar, name)(da, db), [(a, da), (b, db)])
        c, dc = both(x, kind)
        compare(getattr(sparse, name)(c, sparse.square(c)), getattr(oar, name)(dc, dc * dc), [(c, dc)])


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_divide(kind):
    x, y = some([4, 5]), some([4, 5])
    (a, da), (b, db) = both(x, kind), both(y, kind)
    made = sparse.divide(a, b)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(made.to_dense().numpy(), x / y)
    full = some([4, 5], 2.0)
    (a, da), (b, db) = both(x, kind), both(full, kind)
    compare(sparse.divide(a, b), da / db, [(a, da), (b, db)])
    compare(sparse.divide(a.detach(), 4.0), da.detach() / 4.0 + da * 0, [])


def test_binary_of_hybrid_tensors():
    for axes in (1, 2):
        (a, da), (b, db) = both(some([3, 4, 2]), "coo", axes), both(some([3, 4, 2]), "coo", axes)
        compare(sparse.add(a, b), da + db, [(a, da), (b, db)])


def test_binary_with_dense():
    x, y = some([3, 4]), some([3, 4], 2.0)
    for kind in ("coo", "csr"):
        a, da = both(x, kind)
        b, db = leaf(y), leaf(y)
        made = sparse.multiply(a, b)
        assert made._kind == a._kind
        compare(made, da * db, [(a, da), (b, db)])
        a, da = both(x, kind)
        b, db = leaf(y), leaf(y)
        total = a + b - a
        assert total.is_dense()
        np.testing.assert_allclose(total.numpy(), y)
    with pytest.raises(NotImplementedError, match="another shape"):
        oar.to_tensor(x).to_sparse_coo(2) * oar.ones([4])
    with pytest.raises(ValueError, match="not broadcast"):
        sparse.add(oar.eye(3).to_sparse_coo(2), oar.eye(4).to_sparse_coo(2))
    with pytest.raises(ValueError, match="sparse axes"):
        sparse.add(oar.eye(3).to_sparse_coo(2), oar.eye(3).to_sparse_coo(1))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, [0, 1], [1, 2], [0, 1, 2]])
def test_sum_of_coo(axis, keepdim):
    for axes in (1, 2, 3):
        t, dense = both(some([3, 4, 2]), "coo", axes)
        compare(sparse.sum(t, axis, keepdim=keepdim), oar.sum(dense, axis, keepdim=keepdim), [(t, dense)])


@pytest.mark.parametrize(("shape", "axis", "result"), [
    ([4, 5], None, [1, 1]), ([4, 5], -1, [4, 1]), ([4, 5], 0, [1, 5]), ([2, 4, 5], -1, [2, 4]), ([2, 4, 5], None, [1, 1, 1]),
])  # fmt: skip
def test_sum_of_csr(shape, axis, result):
    t, dense = both(some(shape), "csr")
    made = sparse.sum(t, axis)
    assert made.is_sparse_csr() and made.shape == result
    compare(made, oar.sum(dense, axis), [(t, dense)])


def test_sum_dtypes():
    t = oar.to_tensor([[0, 1], [2, 3]], dtype="int32").to_sparse_coo(2)
    assert sparse.sum(t).dtype == oar.int64 and sparse.sum(t, 0).values().tolist() == [2, 4]
    assert sparse.sum(t, 0, "float64").dtype == oar.float64


def test_transpose():
    t, dense = both(some([2, 3, 4]), "coo")
    compare(sparse.transpose(t, [2, 0, 1]), oar.transpose(dense, [2, 0, 1]), [(t, dense)])
    t, dense = both(some([2, 3, 4, 2]), "coo", 2)
    compare(sparse.transpose(t, [1, 0, 3, 2]), oar.transpose(dense, [1, 0, 3, 2]), [(t, dense)])
    for shape, perm in (([3, 4], [1, 0]), ([2, 3, 4], [0, 2, 1]), ([2, 3, 4], [2, 1, 0])):
        t, dense = both(some(shape), "csr")
        made = sparse.transpose(t, perm)
        assert made.is_sparse_csr()
        compare(made, oar.transpose(dense, perm), [(t, dense)])
    with pytest.raises(NotImplementedError, match="mixes"):
        sparse.transpose(oar.ones([2, 3]).to_sparse_coo(1), [1, 0])


def test_reshape():
    t, dense = both(some([2, 6]), "coo")
    compare(sparse.reshape(t, [3, -1, 2]), oar.reshape(dense, [3, -1, 2]), [(t, dense)])
    t, dense = both(some([2, 6, 3]), "coo", 2)
    compare(sparse.reshape(t, [4, 3, 3]), oar.reshape(dense, [4, 3, 3]), [(t, dense)])
    t, dense = both(some([2, 6]), "csr")
    compare(sparse.reshape(t, [4, 3]), oar.reshape(dense, [4, 3]), [(t, dense)])
    with pytest.raises(NotImplementedError, match="dense ones"):
        sparse.reshape(oar.ones([2, 3]).to_sparse_coo(1), [6])


@pytest.mark.parametrize(("axes", "starts", "ends"), [([0], [1], [3]), ([1], [-3], [-1]), ([0, 1], [0, 2], [100, 100]), ([0], [3], [1])])
def test_slice(axes, starts, ends):
    for kind in ("coo", "csr"):
        t, dense = both(some([4, 5]), kind)
        made = sparse.slice(t, axes, starts, ends)
        assert made._kind == t._kind
        if 0 not in made.shape:
            compare(made, oar.slice(dense, axes, starts, ends), [(t, dense)])
    t, dense = both(some([3, 4, 5]), "coo", 2)
    compare(sparse.slice(t, [0, 2], [1, 1], [3, 4]), oar.slice(dense, [0, 2], [1, 1], [3, 4]), [(t, dense)])


def row_softmax(x, axis):
    with np.errstate(invalid="ignore"):
        masked = np.where(x != 0, x, -np.inf)
        e = np.exp(masked - np.where(np.isfinite(masked.max(axis, keepdims=True)), masked.max(axis, keepdims=True), 0))
        return np.nan_to_num(e / e.sum(axis, keepdims=True))


def test_softmax():
    for shape in ([4, 5], [2, 3, 4]):
        x = some(shape)
        t = oar.to_tensor(x).to_sparse_csr()
        np.testing.assert_allclose(sparse.nn.functional.softmax(t).to_dense().numpy(), row_softmax(x, -1), rtol=1e-12)
        for axis in range(len(shape)):
            t = oar.to_tensor(x).to_sparse_coo(len(shape))
            made = sparse.nn.functional.softmax(t, axis)
            np.testing.assert_allclose(made.to_dense().numpy(), row_softmax(x, axis), rtol=1e-12)
    x = some([4, 5, 3])
    x[x.any(-1)] += 0.25  # all channels of a point that is held
    t = oar.to_tensor(x).to_sparse_coo(2)
    for axis in (0, 1):
        made = sparse.nn.functional.softmax(t, axis)
        np.testing.assert_allclose(made.to_dense().numpy(), row_softmax(x, axis), rtol=1e-12)
    dense_axis = sparse.nn.functional.softmax(t, 2)
    np.testing.assert_allclose(dense_axis.values().numpy(), oar.nn.functional.softmax(t.values(), 1).numpy())
    with pytest.raises(NotImplementedError, match="last axis"):
        sparse.nn.functional.softmax(oar.eye(3).to_sparse_csr(), 0)


def test_gradient_of_softmax():
    x = some([4, 5])
    for axis in (0, 1):
        t, dense = both(x, "coo")
        masked = oar.where(oar.to_tensor(x != 0), dense, oar.full([], -1e9, "float64"))
        expected = oar.nn.functional.softmax(masked, axis) * oar.to_tensor((x != 0).astype("float64"))
        made = sparse.nn.functional.softmax(t, axis)
        held = oar.to_tensor(RNG.standard_normal(x.shape))
        (made.to_dense() * held).sum().backward()
        (expected * held * oar.to_tensor((x != 0).any(axis, keepdims=True).astype("float64"))).sum().backward()
        np.testing.assert_allclose(t.grad.to_dense().numpy(), dense.grad.numpy(), atol=1e-12)


def test_add_bias():
    t = sparse.sparse_coo_tensor([[0, 1], [0, 3]], [[1.0, 1.0], [2.0, 2.0]], [2, 4, 2], stop_gradient=False)
    bias = leaf(np.array([1.0, 2.0], "float32"))
    made = sparse.add(t, bias)
    assert made.nnz() == 2 and made.values().tolist() == [[2.0, 3.0], [3.0, 4.0]]
    made.values().sum().backward()
    assert bias.grad.tolist() == [2.0, 2.0]


def test_copy():
    for convert in (lambda t: t.to_sparse_coo(2), lambda t: t.to_sparse_csr()):
        x, y = convert(oar.eye(3)), convert(oar.to_tensor([[0.0, 2.0, 0.0]] * 3))
        assert x.copy_(y, True) is x
        assert x.to_dense().tolist() == y.to_dense().tolist()
        x.set_value(convert(oar.eye(3)))
        assert x.to_dense().tolist() == np.eye(3).tolist() and y.nnz() == 3
    with pytest.raises(NotImplementedError, match="dense"):
        oar.eye(3).to_sparse_csr().copy_(oar.eye(3))


def test_isnan_and_same_shape():
    t = oar.to_tensor([0.0, 1.0, float("nan")]).to_sparse_coo(1)
    assert sparse.isnan(t).to_dense().tolist() == [False, False, True]
    assert sparse.is_same_shape(t, oar.zeros([3])) and not t.is_same_shape(oar.zeros([4]))


def test_against_scipy():
    a = scipy.sparse.random(60, 40, 0.1, "csr", random_state=1)
    b = scipy.sparse.random(60, 40, 0.1, "csr", random_state=2)
    x, y = (sparse.sparse_csr_tensor(m.indptr, m.indices, m.data, m.shape) for m in (a, b))
    for made, expected in ((sparse.add(x, y), a + b), (sparse.multiply(x, y), a.multiply(b)), (x - y, a - b),
                           (sparse.transpose(x, [1, 0]), a.T), (sparse.matmul(x, sparse.transpose(y, [1, 0])), a @ b.T)):
        np.testing.assert_allclose(made.to_dense().numpy(), expected.toarray(), rtol=1e-12)
