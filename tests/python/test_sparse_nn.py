"""Layers of sparse tensors against dense ones."""

import numpy as np
import pytest

import oar
from oar import sparse
from oar.nn import functional as F
from test_sparse import RNG, leaf

SF = sparse.nn.functional


def images(shape, density=0.3):
    """Images with dense channels, most of whose points are zero."""
    points = RNG.random([*shape[:-1], 1]) < density
    return RNG.standard_normal(shape) * points


def dense_conv(x, weight, bias, n, **window):
    """The same convolution of dense tensors, channels last."""
    kernel = oar.transpose(weight, [n + 1, n, *range(n)])
    channels_first = oar.transpose(x, [0, n + 1, *range(1, n + 1)])
    out = (F.conv2d if n == 2 else F.conv3d)(channels_first, kernel, bias, **window)
    return oar.transpose(out, [0, *range(2, n + 2), 1])


@pytest.mark.parametrize("window", [{}, {"padding": 1}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}])
@pytest.mark.parametrize("n", [2, 3])
def test_conv(n, window):
    x = images([2, *[6, 5, 4][:n], 3])
    w, b = RNG.standard_normal([3, 2, 3][:n] + [3, 4]), RNG.standard_normal(4)
    t = oar.to_tensor(x).to_sparse_coo(n + 1)
    t.stop_gradient = False
    dense, weight, weight2, bias = leaf(x), leaf(w), leaf(w), leaf(b)
    made = getattr(SF, f"conv{n}d")(t, weight, None, **window)
    expected = dense_conv(dense, weight2, None, n, **window)
    assert made.shape == expected.shape and made.is_coalesced() and made.nnz() < np.prod(made.shape[:-1]) + 1
    np.testing.assert_allclose(made.to_dense().numpy(), expected.numpy(), atol=1e-12)
    seed = oar.to_tensor(RNG.standard_normal(expected.shape))
    (made.to_dense() * seed).sum().backward()
    (expected * seed).sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), weight2.grad.numpy(), atol=1e-10)
    at = sparse.mask_as(dense.grad, t.detach())
    np.testing.assert_allclose(t.grad.values().numpy(), at.values().numpy(), atol=1e-10)
    with_bias = getattr(SF, f"conv{n}d")(t, weight, bias, **window)
    np.testing.assert_allclose(with_bias.values().numpy(), made.values().numpy() + b, atol=1e-12)


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("n", [2, 3])
def test_submanifold_conv(n, dilation):
    x = images([2, *[6, 5, 4][:n], 3])
    w = RNG.standard_normal([3] * n + [3, 4])
    t = oar.to_tensor(x).to_sparse_coo(n + 1)
    t.stop_gradient = False
    dense, weight, weight2 = leaf(x), leaf(w), leaf(w)
    made = getattr(SF, f"subm_conv{n}d")(t, weight, dilation=dilation)
    np.testing.assert_array_equal(made.indices().numpy(), t.indices().numpy())
    expected = sparse.mask_as(dense_conv(dense, weight2, None, n, padding=dilation, dilation=dilation),
                              oar.to_tensor((x.any(-1, keepdims=True) * np.ones(4))).to_sparse_coo(n + 1))
    np.testing.assert_allclose(made.values().numpy(), expected.values().numpy(), atol=1e-12)
    made.values().square().sum().backward()
    expected.values().square().sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), weight2.grad.numpy(), atol=1e-9)
    same = getattr(SF, f"subm_conv{n}d_igemm")(t, weight, dilation=dilation)
    np.testing.assert_allclose(same.values().numpy(), made.values().numpy())


def test_second_derivative_of_conv():
    x, w = images([1, 4, 4, 2]), RNG.standard_normal([3, 3, 2, 2])
    found = []
    for dense in (False, True):
        weight = leaf(w)
        t = oar.to_tensor(x).to_sparse_coo(3)
        out = dense_conv(leaf(x), weight, None, 2) if dense else SF.conv2d(t, weight).to_dense()
        (first,) = oar.grad((out**3).sum(), [weight], create_graph=True)
        found.append(oar.grad((first**2).sum(), [weight])[0].numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("window", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1},
                                    {"kernel_size": 2, "stride": 2, "ceil_mode": True}])  # fmt: skip
def test_max_pool3d(window):
    x = np.abs(images([2, 5, 4, 5, 3], 0.6))  # all windows of elements are positive, as absent ones are not counted
    t = oar.to_tensor(x).to_sparse_coo(4)
    t.stop_gradient = False
    dense = leaf(x)
    made = SF.max_pool3d(t, **window)
    expected = F.max_pool3d(dense, data_format="NDHWC", **window)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made.to_dense().numpy(), expected.numpy())
    made.values().sum().backward()
    assert abs(t.grad.values().sum().item() - made.nnz() * 3) < 1e-9


def test_max_pool_of_negative_elements():
    t = sparse.sparse_coo_tensor([[0, 0], [0, 1], [0, 1], [0, 1]], [[-1.0], [-2.0]], [1, 2, 2, 2, 1])
    assert SF.max_pool3d(t, 2).values().tolist() == [[-1.0]]


def test_batch_norm():
    x = images([2, 4, 4, 3, 5], 0.5)
    t = oar.to_tensor(x.astype("float32")).to_sparse_coo(4)
    layer, dense = sparse.nn.BatchNorm(5), oar.nn.BatchNorm1D(5)
    np.testing.assert_allclose(layer(t).values().numpy(), dense(t.values()).numpy(), rtol=1e-6)
    np.testing.assert_allclose(layer._mean.numpy(), dense._mean.numpy(), rtol=1e-6)
    layer.eval()
    dense.eval()
    np.testing.assert_allclose(layer(t).values().numpy(), dense(t.values()).numpy(), rtol=1e-6)
    net = oar.nn.Sequential(sparse.nn.BatchNorm(5), sparse.nn.ReLU())
    converted = sparse.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(converted[0], sparse.nn.SyncBatchNorm) and converted(t).is_sparse_coo()
    with pytest.raises(ValueError, match="channels last"):
        sparse.nn.BatchNorm(3, data_format="NCDHW")


@pytest.mark.parametrize("masks", ["none", "keys", "pairs", "both"])
def test_attention(masks):
    batch, heads, length, width = 2, 3, 5, 4
    q, k, v = (RNG.standard_normal((batch, heads, length, width)) for _ in range(3))
    seen = RNG.random((batch * heads, length, length)) < 0.6
    keys = (RNG.random((batch, length)) < 0.7) if masks in ("keys", "both") else None
    pairs = (RNG.random((length, length)) < 0.7) if masks in ("pairs", "both") else None
    allowed = seen.reshape(batch, heads, length, length).copy()
    if keys is not None:
        allowed &= keys[:, None, None, :]
    if pairs is not None:
        allowed &= pairs
    scores = np.where(allowed, q @ k.transpose(0, 1, 3, 2) / np.sqrt(width), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        expected = np.nan_to_num(e / e.sum(-1, keepdims=True)) @ v
    tensors = [leaf(t) for t in (q, k, v)]
    given = [None if m is None else oar.to_tensor(m.astype("float64")) for m in (keys, pairs)]
    made = SF.attention(*tensors, oar.to_tensor(seen.astype("float64")).to_sparse_csr(), *given)
    np.testing.assert_allclose(made.numpy(), expected, atol=1e-12)
    made.square().sum().backward()
    assert all(np.isfinite(t.grad.numpy()).all() for t in tensors)


def test_a_network_learns():
    oar.seed(1)
    x = oar.to_tensor(images([4, 6, 6, 6, 2]).astype("float32")).to_sparse_coo(4)
    net = oar.nn.Sequential(
        sparse.nn.SubmConv3D(2, 8, 3), sparse.nn.BatchNorm(8), sparse.nn.ReLU(), sparse.nn.MaxPool3D(2, 2),
        sparse.nn.Conv3D(8, 4, 3, padding=1), sparse.nn.LeakyReLU(0.1),
    )  # fmt: skip
    optimizer = oar.optimizer.Adam(0.01, parameters=net.parameters())
    losses = []
    for _ in range(25):
        loss = (net(x).values() - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_activations_and_text():
    t = sparse.sparse_coo_tensor([[0, 2]], [-2.0, 8.0], [3])
    assert sparse.nn.ReLU()(t).values().tolist() == [0.0, 8.0]
    assert sparse.nn.ReLU6()(t).values().tolist() == [0.0, 6.0]
    assert sparse.nn.LeakyReLU(0.5)(t).values().tolist() == [-1.0, 8.0]
    assert "kernel_size=[3, 3, 3], stride=[2, 2, 2]" in repr(sparse.nn.Conv3D(2, 3, 3, 2))
    assert sparse.nn.Softmax()(oar.eye(2).to_sparse_csr()).values().tolist() == [1.0, 1.0]


def test_mistakes():
    t = oar.ones([1, 4, 4, 2]).to_sparse_coo(3)
    for call, error, text in (
        (lambda: SF.conv2d(t, oar.ones([3, 3, 5, 1])), ValueError, "2 channels"),
        (lambda: SF.conv2d(t, oar.ones([3, 3, 2, 1]), groups=2), ValueError, "one group"),
        (lambda: SF.conv2d(t, oar.ones([3, 3, 2, 1]), data_format="NCHW"), ValueError, "channels last"),
        (lambda: SF.conv2d(t, oar.ones([7, 7, 2, 1])), ValueError, "does not fit"),
        (lambda: SF.conv3d(t, oar.ones([3, 3, 3, 2, 1])), ValueError, "NDHWC"),
        (lambda: SF.conv2d(oar.ones([1, 4, 4, 2]), oar.ones([3, 3, 2, 1])), TypeError, "COO"),
        (lambda: SF.conv2d(oar.ones([1, 4, 4, 2]).to_sparse_coo(4), oar.ones([3, 3, 2, 1])), ValueError, "to_sparse_coo"),
        (lambda: SF.max_pool3d(t, 2), ValueError, "NDHWC"),
        (lambda: sparse.nn.SubmConv2D(1, 1, 3, data_format="NCHW"), ValueError, "channels last"),
        (lambda: SF.attention(*[oar.ones([1, 1, 3, 2])] * 3, oar.eye(3).to_sparse_csr()), ValueError, "sparse_mask"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()
    repeated = sparse.sparse_coo_tensor([[0, 0], [1, 1], [1, 1]], [[1.0], [2.0]], [1, 3, 3, 1])
    once = SF.subm_conv2d(repeated, oar.ones([3, 3, 1, 1]), oar.ones([1]))
    assert once.nnz() == 1 and once.values().tolist() == [[4.0]]
