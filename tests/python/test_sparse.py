"""Sparse tensors: creation, parts, conversions, printing, copies, gradients, and what they refuse."""

import copy
import pickle

import numpy as np
import pytest

import oar
from oar import sparse

RNG = np.random.default_rng(3)


def some(shape, density=0.4, dtype="float64"):
    """An array with zeros."""
    values = RNG.standard_normal(shape) * 5
    return np.where(RNG.random(shape) < density, values, 0).astype(dtype)


def leaf(array):
    return oar.to_tensor(array, stop_gradient=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "complex128", "bool", "float16"])
@pytest.mark.parametrize("shape", [[5], [3, 4], [2, 3, 4], [2, 1, 3, 2]])
def test_dense_to_coo_and_back(shape, dtype):
    x = some(shape).astype(dtype)
    for axes in range(1, len(shape) + 1):
        t = oar.to_tensor(x).to_sparse_coo(axes)
        assert t.is_sparse() and t.is_sparse_coo() and not t.is_sparse_csr() and not t.is_dense()
        assert t.shape == shape and t.dtype == oar.to_tensor(x).dtype
        assert (t.sparse_dim(), t.dense_dim()) == (axes, len(shape) - axes)
        places = np.argwhere(x.reshape(*shape[:axes], -1).any(-1)).T
        np.testing.assert_array_equal(t.indices().numpy(), places)
        np.testing.assert_array_equal(t.values().numpy(), x[tuple(places)])
        assert t.nnz() == places.shape[1] and t.is_coalesced()
        np.testing.assert_array_equal(t.to_dense().numpy(), x)


@pytest.mark.parametrize("shape", [[3, 4], [2, 3, 4], [1, 1], [4, 0], [0, 3]])
def test_csr_and_back(shape):
    x = some(shape)
    for t in (oar.to_tensor(x).to_sparse_csr(), oar.to_tensor(x).to_sparse_coo(len(shape)).to_sparse_csr()):
        assert t.is_sparse_csr()
        counts = (x if len(shape) == 3 else x[None]) != 0
        crows = [np.append(0, np.cumsum(rows.sum(1))) for rows in counts]
        np.testing.assert_array_equal(t.crows().numpy(), np.concatenate(crows))
        np.testing.assert_array_equal(t.cols().numpy(), np.argwhere(x)[:, -1])
        np.testing.assert_array_equal(t.to_dense().numpy(), x)
        back = t.to_sparse_coo(len(shape))
        np.testing.assert_array_equal(back.indices().numpy(), np.argwhere(x).T)
        np.testing.assert_array_equal(back.to_dense().numpy(), x)


def test_coalesce_sorts_and_sums():
    indices = RNG.integers(0, 4, (2, 40))
    values = RNG.standard_normal((40, 3))
    t = sparse.sparse_coo_tensor(indices, values, [4, 5, 3])
    expected = np.zeros((4, 5, 3))
    np.add.at(expected, tuple(indices), values)
    assert not t.is_coalesced()
    made = t.coalesce()
    assert made.is_coalesced() and made.nnz() == len(np.unique(indices[0] * 5 + indices[1]))
    flat = made.indices().numpy()[0] * 5 + made.indices().numpy()[1]
    assert (np.diff(flat) > 0).all()
    np.testing.assert_allclose(made.to_dense().numpy(), expected)
    np.testing.assert_allclose(t.to_dense().numpy(), expected)
    assert made.coalesce() is made or made.coalesce().is_coalesced()


def test_index_dtypes_are_kept():
    for dtype in ("int32", "int64"):
        indices = oar.to_tensor([[0, 2, 0], [1, 0, 1]], dtype=dtype)
        t = sparse.sparse_coo_tensor(indices, [1.0, 2.0, 3.0], [3, 3])
        for made in (t, t.coalesce(), sparse.sin(t), sparse.transpose(t, [1, 0]), sparse.reshape(t, [9, 1])):
            assert made.indices().dtype == indices.dtype
        csr = t.to_sparse_csr()
        assert csr.crows().dtype == csr.cols().dtype == indices.dtype
        assert sparse.matmul(csr, csr).cols().dtype == indices.dtype


def test_shapes_are_inferred():
    assert sparse.sparse_coo_tensor([[0, 4], [1, 2]], [1.0, 2.0]).shape == [5, 3]
    assert sparse.sparse_coo_tensor([[0, 4]], [[1.0, 2.0], [3.0, 4.0]]).shape == [5, 2]
    assert sparse.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0]).shape == [2, 6]
    assert sparse.sparse_csr_tensor([0, 1, 2, 0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0]).shape == [2, 2, 2]


def test_printing():
    t = sparse.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], [1.0, -2.5, 3.0], [3, 3], stop_gradient=False)
    assert repr(t) == (
        "Tensor(shape=[3, 3], dtype=float32, place=Place(cpu), stop_gradient=False,\n"
        "       indices=[[0, 1, 2],\n                [1, 2, 0]],\n"
        "       values=[ 1.        , -2.50000000,  3.        ])"
    )
    assert "crows=[0, 1, 2, 3],\n       cols=[1, 2, 0],\n       values=" in str(t.detach().to_sparse_csr())


def test_copies():
    t = sparse.sparse_coo_tensor([[0, 2]], [1.0, 2.0], [3], stop_gradient=False)
    for twin in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), t.clone(), t.detach(), copy.copy(t)):
        assert twin.is_sparse_coo() and twin.to_dense().tolist() == [1.0, 0.0, 2.0]
    assert copy.deepcopy(t).stop_gradient is False and t.detach().stop_gradient is True
    csr = pickle.loads(pickle.dumps(oar.eye(3).to_sparse_csr()))
    assert csr.is_sparse_csr() and csr.to_dense().tolist() == np.eye(3).tolist()


def test_astype_and_cast():
    t = oar.to_tensor([[0.0, 1.5], [2.0, 0.0]]).to_sparse_csr()
    assert t.astype("float64").dtype == oar.float64 and t.astype("float64").is_sparse_csr()
    made = sparse.cast(t, "int32", "int64")
    assert made.crows().dtype == made.cols().dtype == oar.int32 and made.values().tolist() == [1, 2]


def test_a_leaf_has_a_gradient_of_its_pattern():
    x = some([4, 5])
    for t in (oar.to_tensor(x).to_sparse_coo(2), oar.to_tensor(x).to_sparse_csr()):
        t.stop_gradient = False
        assert t.is_leaf and t.grad is None
        sparse.square(t).to_dense().sum().backward()
        assert t.grad._kind == t._kind
        np.testing.assert_allclose(t.grad.to_dense().numpy(), 2 * x)
        t.clear_grad()
        assert t.grad.to_dense().abs().sum().item() == 0
        t.grad = None
        assert t.grad is None


def test_gradients_reach_dense_tensors_and_values():
    x = leaf(some([4, 5]))
    (x.to_sparse_coo(2).to_dense() ** 3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.numpy() ** 2)
    values = leaf(np.array([1.0, 2.0, 4.0]))
    t = sparse.sparse_coo_tensor([[0, 1, 0]], values, [3], stop_gradient=False)
    (t.to_dense() ** 2).sum().backward()
    np.testing.assert_allclose(values.grad.numpy(), [10.0, 4.0, 10.0])
    np.testing.assert_allclose(t.grad.values().numpy(), [10.0, 4.0, 10.0])
    y = leaf(some([3, 3], 1.0))
    mask = sparse.sparse_csr_tensor([0, 1, 2, 2], [2, 0], [1.0, 1.0], [3, 3])
    (sparse.mask_as(y, mask).values() * oar.to_tensor([2.0, 3.0], dtype="float64")).sum().backward()
    expected = np.zeros((3, 3))
    expected[0, 2], expected[1, 0] = 2, 3
    np.testing.assert_allclose(y.grad.numpy(), expected)


def test_backward_from_a_sparse_tensor():
    x = some([3, 4])
    t = oar.to_tensor(x).to_sparse_coo(2)
    t.stop_gradient = False
    out = sparse.square(t)
    out.backward()
    np.testing.assert_allclose(t.grad.to_dense().numpy(), 2 * x)
    t.clear_grad()
    out = sparse.square(t)
    out.backward(out.detach())
    np.testing.assert_allclose(t.grad.to_dense().numpy(), 2 * x**3)


def test_grad_function_and_higher_orders():
    x = some([3, 4])
    t = oar.to_tensor(x).to_sparse_csr()
    t.stop_gradient = False
    cubed = sparse.pow(t, 3).values().sum()
    (first,) = oar.grad(cubed, [t], create_graph=True)
    assert first.is_sparse_csr()
    np.testing.assert_allclose(first.to_dense().numpy(), 3 * x**2)
    (second,) = oar.grad(first.values().sum(), [t])
    np.testing.assert_allclose(second.to_dense().numpy(), 6 * x)


def test_hooks_see_sparse_gradients():
    t = oar.to_tensor([0.0, 2.0, 3.0]).to_sparse_coo(1)
    t.stop_gradient = False
    seen = []

    def double(grad):
        seen.append(grad.is_sparse_coo())
        return grad * 2

    handle = t.register_hook(double)
    sparse.square(t).values().sum().backward()
    assert seen == [True] and t.grad.to_dense().tolist() == [0.0, 8.0, 12.0]
    assert handle.remove()
    sparse.square(t).values().sum().backward()
    assert seen == [True] and t.grad.to_dense().tolist() == [0.0, 12.0, 18.0]


def test_a_captured_function_takes_sparse_tensors_apart():
    a = oar.to_tensor(some([4, 5])).to_sparse_csr()

    @oar.jit.to_static(full_graph=True)
    def step(values, y):
        t = sparse.sparse_csr_tensor(a.crows(), a.cols(), values, [4, 5], stop_gradient=False)
        return sparse.matmul(sparse.sin(t), y).sum()

    values, y = leaf(a.values().numpy()), leaf(RNG.standard_normal((5, 3)))
    loss = step(values, y)
    loss.backward()
    reference = leaf(a.to_dense().numpy()), leaf(y.numpy())
    expected = (oar.sin(reference[0]) @ reference[1]).sum()
    expected.backward()
    np.testing.assert_allclose(loss.numpy(), expected.numpy())
    np.testing.assert_allclose(y.grad.numpy(), reference[1].grad.numpy())
    places = tuple(a.to_sparse_coo(2).indices().numpy())
    np.testing.assert_allclose(values.grad.numpy(), reference[0].grad.numpy()[places])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: sparse.sparse_coo_tensor([[0, 5]], [1.0, 2.0], [3]), IndexError, "holds 5 along axis 0"),
        (lambda: sparse.sparse_coo_tensor([[0, -1]], [1.0, 2.0], [3]), IndexError, "holds -1"),
        (lambda: sparse.sparse_coo_tensor([[0, 1]], [1.0], [3]), ValueError, "one of each per element"),
        (lambda: sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3, 3]), ValueError, "does not fit"),
        (lambda: sparse.sparse_coo_tensor([0, 1], [1.0, 2.0], [3]), ValueError, "must be 2-D"),
        (lambda: sparse.sparse_coo_tensor([[0.5, 1]], [1.0, 2.0], [3]), TypeError, "indices has dtype"),
        (lambda: sparse.sparse_csr_tensor([0, 1, 3], [0, 1], [1.0, 2.0], [2, 2]), ValueError, "rise from 0 to 2"),
        (lambda: sparse.sparse_csr_tensor([0, 2, 1, 2], [0, 1], [1.0, 2.0], [3, 2]), ValueError, "rise"),
        (lambda: sparse.sparse_csr_tensor([0, 2], [0, 1], [1.0, 2.0], [2, 2]), ValueError, "needs 3"),
        (lambda: sparse.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], [2, 2]), IndexError, "holds 7"),
        (lambda: sparse.sparse_csr_tensor([0, 1], [0], [1.0], [1]), ValueError, "2 axes"),
        (lambda: oar.eye(3).to_sparse_coo(3), ValueError, "from 1 to 2"),
        (lambda: oar.ones([3]).to_sparse_csr(), ValueError, "no CSR form"),
        (lambda: oar.eye(3).values(), TypeError, "sparse"),
        (lambda: oar.eye(3).to_sparse_csr().indices(), TypeError, "COO"),
        (lambda: oar.eye(3).to_sparse_coo(2).crows(), TypeError, "CSR"),
        (lambda: oar.eye(3).to_sparse_coo(2).numpy(), TypeError, "to_dense"),
        (lambda: oar.eye(3).to_sparse_coo(2).tolist(), TypeError, "to_dense"),
        (lambda: oar.exp(oar.eye(3).to_sparse_coo(2)), NotImplementedError, r"to_dense\(\)"),
        (lambda: oar.eye(3).to_sparse_coo(2) + 1, NotImplementedError, r"to_dense\(\)"),
        (lambda: oar.cumsum(oar.eye(3).to_sparse_csr()), NotImplementedError, r"\[cumsum"),
        (lambda: oar.eye(3).to_sparse_csr()[0], NotImplementedError, r"to_dense\(\)"),
        (lambda: sparse.mask_as(oar.ones([2, 2]), oar.eye(3).to_sparse_csr()), ValueError, "one shape"),
        (lambda: sparse.sin(oar.eye(3)), TypeError, r"\[sin\]"),
    ],
)  # fmt: skip
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_gradient_must_have_the_pattern():
    t = sparse.sparse_coo_tensor([[0, 1]], [1.0, 2.0], [3], stop_gradient=False)
    with pytest.raises(ValueError, match="same elements"):
        sparse.square(t).backward(sparse.sparse_coo_tensor([[0, 2]], [1.0, 2.0], [3]))
    with pytest.raises(ValueError, match="same elements"):
        t.grad = sparse.sparse_coo_tensor([[0, 2]], [1.0, 2.0], [3])
