"""Graphs: segments and messages against loops."""

import numpy as np
import pytest

import oar
from oar import geometric, incubate

REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
COMBINE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def reduced(rows, places, size, how):
    return np.stack([REDUCE[how](rows[places == i], 0) if np.any(places == i) else np.zeros_like(rows[0])
                     for i in range(size)])


def leaf(array):
    return oar.to_tensor(array, stop_gradient=False)


@pytest.mark.parametrize("how", REDUCE)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_segments(how, dtype):
    data = np.random.default_rng(2).normal(size=(6, 2, 3)) * 9
    data, ids = data.astype(dtype), np.array([0, 0, 1, 1, 1, 3])
    for home in (geometric, incubate):
        made = getattr(home, f"segment_{how}")(oar.to_tensor(data), oar.to_tensor(ids))
        assert made.dtype.name == dtype
        wanted = reduced(data, ids, 4, how)
        np.testing.assert_allclose(made.numpy(), np.floor(wanted) if dtype == "int64" else wanted, rtol=1e-5)


def test_segments_of_nothing():
    ids = oar.zeros([0], dtype="int64")
    assert geometric.segment_sum(oar.zeros([0, 3]), ids).shape == [0, 3]


@pytest.mark.parametrize("how", REDUCE)
def test_messages_of_nodes(how):
    x, src, dst = np.random.default_rng(3).normal(size=(5, 4)), np.array([0, 1, 2, 0, 4]), np.array([1, 2, 1, 0, 1])
    for out_size, rows in [(None, 5), (0, 5), (3, 3), (oar.to_tensor(3), 3), (7, 7)]:
        made = geometric.send_u_recv(leaf(x), oar.to_tensor(src), oar.to_tensor(dst), how, out_size)
        np.testing.assert_allclose(made.numpy(), reduced(x[src], dst, rows, how), rtol=1e-12)


@pytest.mark.parametrize("message", COMBINE)
def test_messages_of_edges(message):
    rng = np.random.default_rng(4)
    src, dst = np.array([0, 1, 2, 0]), np.array([1, 2, 1, 0])
    x, edge, wide = rng.normal(size=(3, 4)), rng.normal(size=(4, 1)) + 3, rng.normal(size=(3, 4)) + 3
    at, to = oar.to_tensor(src), oar.to_tensor(dst)
    made = geometric.send_ue_recv(leaf(x), leaf(edge), at, to, message, "mean")
    np.testing.assert_allclose(made.numpy(), reduced(COMBINE[message](x[src], edge), dst, 3, "mean"), rtol=1e-12)
    made = geometric.send_ue_recv(leaf(x), leaf(edge[:, 0]), at, to, message, "sum")
    np.testing.assert_allclose(made.numpy(), reduced(COMBINE[message](x[src], edge), dst, 3, "sum"), rtol=1e-12)
    made = geometric.send_uv(leaf(x), leaf(wide), at, to, message)
    np.testing.assert_allclose(made.numpy(), COMBINE[message](x[src], wide[dst]), rtol=1e-12)


def test_gradients_go_back_along_the_edges():
    x = leaf([[1.0], [2.0], [4.0]])
    out = geometric.send_u_recv(x, oar.to_tensor([0, 1, 2, 2]), oar.to_tensor([1, 1, 0, 2]), "mean")
    (out * oar.to_tensor([[3.0], [10.0], [5.0]])).sum().backward()
    assert x.grad.tolist() == [[5], [5], [8]]
    y = leaf([[1.0], [2.0], [4.0]])
    incubate.segment_max(y, oar.to_tensor([0, 0, 1])).sum().backward()
    assert y.grad.tolist() == [[0], [1], [1]]


def test_errors():
    x, i = oar.ones([3, 2]), oar.to_tensor([0, 1])
    with pytest.raises(ValueError, match="reduce_op is 'prod'; it must be one of sum, mean, max, min"):
        geometric.send_u_recv(x, i, i, "prod")
    with pytest.raises(ValueError, match="message_op is 'pow'"):
        geometric.send_uv(x, x, i, i, "pow")
    with pytest.raises(ValueError, match="one number for each row"):
        geometric.segment_sum(x, i)
    with pytest.raises(TypeError, match="int32 or int64, not float32"):
        geometric.segment_sum(x, oar.ones([3]))


def test_softmax_with_masks():
    x, mask = np.random.default_rng(5).normal(size=(2, 3, 4, 4)), np.where(np.eye(4) > 0, -1e4, 0.0)

    def softmax(z):
        e = np.exp(z - z.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    made = incubate.softmax_mask_fuse(oar.to_tensor(x), oar.to_tensor(mask))
    np.testing.assert_allclose(made.numpy(), softmax(x + mask), rtol=1e-12)
    made = incubate.softmax_mask_fuse_upper_triangle(oar.to_tensor(x))
    np.testing.assert_allclose(made.numpy(), softmax(np.where(np.tri(4) > 0, x, -np.inf)), rtol=1e-12)
    with pytest.raises(ValueError, match="two equal sizes"):
        incubate.softmax_mask_fuse_upper_triangle(oar.ones([2, 3]))


@pytest.mark.parametrize("name, number, wanted", [("sum", 0, 6.0), ("mean", 1, 2.0), ("none", 2, [1.0, 2.0, 3.0])])
def test_identity_loss(name, number, wanted):
    x = oar.to_tensor([1.0, 2.0, 3.0])
    assert incubate.identity_loss(x, name).tolist() == incubate.identity_loss(x, number).tolist() == wanted
    with pytest.raises(ValueError, match="'sum', 'mean' or 'none'"):
        incubate.identity_loss(x, "most")
