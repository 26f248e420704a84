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


def test_segments_in_any_order_and_their_gradients():
    data, ids = np.random.default_rng(6).normal(size=(7, 2)), np.array([3, 0, 3, 1, 0, 3, 1])
    for how in REDUCE:
        x = leaf(data)
        made = getattr(geometric, f"segment_{how}")(x, oar.to_tensor(ids))
        np.testing.assert_allclose(made.numpy(), reduced(data, ids, 4, how), rtol=1e-12)
        made.square().sum().backward()
        share = {"sum": np.ones(7), "mean": 1 / np.bincount(ids)[ids]}.get(how)
        each = share[:, None] if share is not None else data == made.numpy()[ids]
        np.testing.assert_allclose(x.grad.numpy(), 2 * made.numpy()[ids] * each, rtol=1e-12)
    x = leaf([[2.0], [2.0]])
    geometric.segment_max(x, oar.to_tensor([0, 0])).sum().backward()
    assert x.grad.tolist() == [[1], [1]]  # as in Paddle: each of the largest ones
    with pytest.raises(ValueError, match="segment_ids holds -1"):
        geometric.segment_sum(oar.ones([1, 2]), oar.to_tensor([-1]))


def test_segments_in_a_program_have_the_size_of_each_run():
    step = oar.jit.capture(geometric.segment_mean, [oar.static.InputSpec([3, 2], "float32"),
                                                    oar.static.InputSpec([3], "int64")])
    assert step(oar.ones([3, 2]), oar.to_tensor([0, 1, 1])).shape == [2, 2]
    assert step(oar.ones([3, 2]), oar.to_tensor([0, 1, 4])).shape == [5, 2]


ROW, COLPTR = np.array([3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]), np.array([0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sampled_neighbors_are_different_ones_of_each_node(weighted, dtype):
    row, colptr = np.arange(100, 170), np.array([0, 30, 30, 70])
    nodes, eids = oar.to_tensor([2, 1, 0], dtype), oar.to_tensor(np.arange(70) * 2, dtype=dtype)
    weights = oar.to_tensor(np.where(np.arange(70) % 2, 1.0, 1e-6), dtype="float32")
    given = [oar.to_tensor(row, dtype=dtype), oar.to_tensor(colptr, dtype=dtype), *([weights] if weighted else []), nodes]
    sample = geometric.weighted_sample_neighbors if weighted else geometric.sample_neighbors
    found, count, edges = sample(*given, 12, eids, True)
    assert count.tolist() == [12, 0, 12] and count.dtype.name == "int32" and found.dtype.name == dtype
    places = found.numpy() - 100
    assert (edges.numpy() == places * 2).all()
    assert set(places[:12]) <= set(range(30, 70)) and set(places[12:]) <= set(range(30))
    assert len(set(places)) == 24
    if weighted:
        assert (places % 2 == 1).all()
    everything, count = sample(*given)
    assert everything.tolist() == [*row[30:], *row[:30]] and count.tolist() == [40, 0, 30]
    with pytest.raises(ValueError, match="eids is None"):
        sample(*given, 12, return_eids=True)


def test_each_neighbor_is_as_probable():
    row, colptr, nodes = oar.arange(8), oar.to_tensor([0, 8]), oar.zeros([4000], "int64")
    oar.seed(5)
    found, _ = geometric.sample_neighbors(row, colptr, nodes, 2)
    counts = np.bincount(found.numpy(), minlength=8)
    assert counts.sum() == 8000 and np.abs(counts - 1000).max() < 150  # 5 standard deviations


def test_hops_of_neighbors():
    row, colptr = oar.to_tensor(ROW), oar.to_tensor(COLPTR)
    src, dst, nodes, starts, eids = incubate.graph_khop_sampler(
        row, colptr, oar.to_tensor([0, 8]), [-1, -1], oar.arange(13), True)
    assert nodes[starts].tolist() == [0, 8]
    edges = {(int(nodes[s]), int(nodes[d])) for s, d in zip(src.flatten(), dst.flatten())}
    wanted = {(int(ROW[e]), n) for n in (0, 8, 3, 7, 9) for e in range(COLPTR[n], COLPTR[n + 1])}
    assert edges == wanted
    assert [int(ROW[e]) for e in eids.tolist()] == nodes[src.flatten()].tolist()


def test_errors_of_graphs():
    row, colptr = oar.to_tensor(ROW), oar.to_tensor(COLPTR)
    with pytest.raises(IndexError, match="input_nodes holds 10; colptr has 10 nodes"):
        geometric.sample_neighbors(row, colptr, oar.to_tensor([10]))
    with pytest.raises(ValueError, match="count says that there are 1 neighbors, but there are 2"):
        geometric.reindex_graph(oar.to_tensor([0]), oar.to_tensor([1, 2]), oar.to_tensor([1], dtype="int32"))
