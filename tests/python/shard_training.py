"""What the processes of test_sharded_tensors.py train, move and refuse, against one process that holds everything."""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import oar
import oar.distributed as dist
from oar import nn
from oar.distributed import Partial, ReduceType, Replicate, Shard
from oar.distributed.auto_parallel.api import dtensor_from_local, dtensor_to_local
from shard_work import started

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}


def grid_of_two() -> dist.ProcessMesh:
    """A grid with two axes: of 2 processes, or of 1 and 2."""
    dist.init_parallel_env()
    count = dist.get_world_size()
    return dist.ProcessMesh(np.arange(count).reshape(count // 2, 2), dim_names=["dp", "mp"])


# ---- Moves -----------------------------------------------------------------------------------------

ALONG_ONE = [Replicate(), Shard(0), Shard(1), Partial(), Partial(ReduceType.kRedAvg), Partial(ReduceType.kRedMax),
             Partial(ReduceType.kRedMin), Partial(ReduceType.kRedProd)]  # fmt: skip


def moves() -> None:
    """Every pair of placements keeps the value, on sizes that do not divide and that are smaller than the grid."""
    mesh = started()
    rng = np.random.default_rng(1)
    count = 0
    for shape in ((5, 7), (1, 4), (2, 3, 0)):
        whole = oar.to_tensor(rng.standard_normal(shape))
        for before, after in itertools.product(ALONG_ONE, ALONG_ONE):
            x = dist.shard_tensor(whole, mesh, [before])
            y = dist.reshard(x, mesh, [after])
            assert y.placements == [after] and y.shape == list(shape)
            if before.is_shard():
                assert x._local_shape[before.get_dim()] == len(range(*part(shape[before.get_dim()], mesh.size, dist.get_rank())))
            np.testing.assert_allclose(y.numpy(), whole.numpy(), rtol=1e-15, atol=1e-15)
            count += 1
    assert count == 3 * len(ALONG_ONE) ** 2


def part(size: int, count: int, place: int) -> tuple[int, int]:
    step = -(-size // count)
    return min(place * step, size), min((place + 1) * step, size)


def moves_on_two_axes() -> None:
    mesh = grid_of_two()
    whole = oar.to_tensor(np.random.default_rng(1).standard_normal((5, 6)))
    both = list(itertools.product([Replicate(), Shard(0), Shard(1), Partial()], repeat=2))
    for before, after in itertools.product(both, both):
        y = dist.reshard(dist.shard_tensor(whole, mesh, before), mesh, after)
        assert y.placements == list(after)
        np.testing.assert_allclose(y.numpy(), whole.numpy(), rtol=1e-15, err_msg=f"{before} to {after}")


def gradients_of_moves() -> None:
    mesh = started()
    rng = np.random.default_rng(1)
    whole, weight = (oar.to_tensor(rng.standard_normal((5, 3))) for _ in range(2))
    for before, after in itertools.product([Replicate(), Shard(0), Partial()], [Replicate(), Shard(1), Partial()]):
        x = dist.shard_tensor(whole, mesh, [before], stop_gradient=False)
        y = dist.reshard(x, mesh, [after])
        first, = oar.grad((y * y * y * weight).sum(), x, create_graph=True)
        assert first.placements == [Replicate() if before.is_partial() else before]
        np.testing.assert_allclose(first.numpy(), 3 * (whole * whole * weight).numpy(), rtol=1e-13)
        second, = oar.grad(first.sum(), x)
        np.testing.assert_allclose(second.numpy(), 6 * (whole * weight).numpy(), rtol=1e-13)
    # Pieces out of and into sharded tensors.
    x = dist.shard_tensor(oar.ones([4, 3]), mesh, [Shard(0)], stop_gradient=False)
    piece = dtensor_to_local(x, mesh, [Shard(0)])
    assert not piece.is_dist() and piece.shape == [4 // mesh.size, 3]
    joined = dtensor_from_local(piece * (dist.get_rank() + 1.0), mesh, [Shard(0)])
    assert joined.shape == [4, 3]
    joined.sum().backward()
    factors = np.repeat(np.arange(1.0, mesh.size + 1), 4 // mesh.size)[:, None] * np.ones([1, 3])
    np.testing.assert_allclose(joined.numpy(), factors)
    np.testing.assert_allclose(x.grad.numpy(), factors)


# ---- Writes and errors -----------------------------------------------------------------------------


def writes() -> None:
    mesh = started()
    for placement in (Replicate(), Shard(0), Shard(1), Partial()):
        value = np.arange(12.0).reshape(4, 3)
        x = dist.shard_tensor(oar.to_tensor(value), mesh, [placement])
        x.add_(oar.ones([4, 3]))
        x.multiply_(dist.shard_tensor(oar.full([4, 3], 2.0, "float64"), mesh, [Shard(1)]))
        assert x.placements == [placement]
        np.testing.assert_array_equal(x.numpy(), (value + 1) * 2)
        x.set_value(oar.to_tensor(value))
        assert x.placements == [placement]
        np.testing.assert_array_equal(x.numpy(), value)
    x = dist.shard_tensor(oar.zeros([4, 3]), mesh, [Shard(0)])
    x[:, 1] = 5.0  # a view of each piece
    np.testing.assert_array_equal(x.numpy(), np.array([[0, 5, 0]] * 4))
    x[1] = 3.0
    np.testing.assert_array_equal(x.numpy(), np.array([[0, 5, 0], [3, 3, 3], [0, 5, 0], [0, 5, 0]]))
    assert x.placements == [Shard(0)]
    with pytest.raises(NotImplementedError, match="had to be moved between processes cannot be written"):
        x[1].add_(oar.ones([3]))
    with pytest.raises(NotImplementedError, match="what each of them has"):
        oar._C.ops.all_reduce(x, "sum", 0, mesh.size)
    y = dist.shard_tensor(oar.ones([4, 3]), mesh, [Shard(0)], stop_gradient=False)
    z = y * y
    z.add_(oar.ones([4, 3]))
    z.sum().backward()  # the product needs y alone
    np.testing.assert_array_equal(y.grad.numpy(), np.full([4, 3], 2.0))
    e = y.exp()
    e.add_(oar.ones([4, 3]))
    with pytest.raises(RuntimeError, match="changed in place"):
        e.sum().backward()
    view = (y * 1.0)[:, 0]
    with pytest.raises(NotImplementedError, match="write through a view of a sharded tensor"):
        view.add_(oar.ones([4]))
    assert "Shard(dim=0)" in str(y) and "[1." in str(y)
    with pytest.raises(ValueError, match="has the processes"):
        dist.shard_tensor(oar.ones([2]), dist.ProcessMesh([0, 99]), [Shard(0)])
    other = dist.shard_tensor(oar.ones([4, 3]), dist.ProcessMesh(list(range(mesh.size)), ["other"]), [Shard(0)])
    with pytest.raises(ValueError, match="two meshes"):
        other + x


def random_numbers() -> None:
    """Dropout and the others draw the numbers of the whole tensor."""
    mesh = started()
    x = oar.to_tensor(np.random.default_rng(1).standard_normal((6, 10)))
    calls: list[Callable] = [lambda t: nn.functional.dropout(t, 0.4), lambda t: nn.functional.alpha_dropout(t, 0.3),
                             lambda t: oar.bernoulli(t.abs().clip(0, 1)),
                             lambda t: oar.poisson(t.abs() * 5)]
    for call in calls:
        for placement in (Shard(0), Shard(1), Replicate()):
            oar.seed(11)
            wanted, after = call(x), oar.rand([3])
            oar.seed(11)
            got, then = call(dist.shard_tensor(x, mesh, [placement])), oar.rand([3])
            assert got.placements == [placement], (got.placements, placement)
            np.testing.assert_array_equal(got.numpy(), wanted.numpy())
            np.testing.assert_array_equal(after.numpy(), then.numpy())


# ---- Training --------------------------------------------------------------------------------------


class MLP(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Layer):
    """Attention and a feed-forward part, with norms before both and dropout after."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(0.1)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        # The bias of keys has no gradient but rounding errors, which AdamW would enlarge.
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias_attr=False)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def split(self, x: oar.Tensor) -> oar.Tensor:
        return x.reshape([x.shape[0], x.shape[1], self.heads, -1]).transpose([0, 2, 1, 3])

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        h = self.before(x)
        q, k, v = (self.split(part(h)) for part in (self.query, self.key, self.value))
        scores = nn.functional.softmax(q @ k.transpose([0, 1, 3, 2]) * (q.shape[-1] ** -0.5))
        mixed = (scores @ v).transpose([0, 2, 1, 3]).reshape(x.shape)
        x = x + self.dropout(self.out(mixed))
        return x + self.dropout(self.down(nn.functional.gelu(self.up(self.between(x)))))


def by_columns(layer: nn.Linear, mesh: dist.ProcessMesh, axis: int) -> None:
    place = [Replicate()] * mesh.ndim
    place[axis] = Shard(1)
    layer.weight = dist.shard_tensor(layer.weight, mesh, place)
    place[axis] = Shard(0)
    if layer.bias is not None:
        layer.bias = dist.shard_tensor(layer.bias, mesh, place)


def by_rows(layer: nn.Linear, mesh: dist.ProcessMesh, axis: int) -> None:
    place = [Replicate()] * mesh.ndim
    place[axis] = Shard(0)
    layer.weight = dist.shard_tensor(layer.weight, mesh, place)


def tensor_parallel(name: str, layer: nn.Layer, mesh: dist.ProcessMesh) -> None:
    last = name.rpartition(".")[2]
    if last in ("up", "query", "key", "value"):
        by_columns(layer, mesh, mesh.ndim - 1)
    elif last in ("down", "out"):
        by_rows(layer, mesh, mesh.ndim - 1)


def trained(make: Callable, shape: list[int], dtype: str, mesh: dist.ProcessMesh | None, shard_fn: Callable | None,
            inputs: list, stage: Callable | None, steps: int, rule: type = oar.optimizer.AdamW) -> tuple[list[float], dict]:
    oar.seed(5)
    net = make()
    net.to(dtype=dtype)
    if mesh is not None:
        net = dist.shard_layer(net, mesh, shard_fn)
    optimizer = rule(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    if mesh is not None:
        optimizer = dist.shard_optimizer(optimizer, stage)
    rng, losses = np.random.default_rng(3), []
    for _ in range(steps):
        x = oar.to_tensor(rng.standard_normal(shape), dtype=dtype)
        target = oar.to_tensor(rng.standard_normal(shape_of_target(make, shape)), dtype=dtype)
        if mesh is not None:
            x, target = (dist.shard_tensor(t, mesh, inputs) for t in (x, target))
        oar.seed(rng.integers(1 << 20))
        loss = ((net(x) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return losses, {name: value.numpy() for name, value in net.state_dict().items()}


def shape_of_target(make: Callable, shape: list[int]) -> list[int]:
    return [*shape[:-1], 3] if make is MLP else shape


def train(dtype: str = "float64", steps: int = 20) -> None:
    """Losses and parameters are those of one process."""
    one, two = started(), grid_of_two()
    stages = dist.ShardingStage1, dist.ShardingStage2, dist.ShardingStage3
    cases: list = [
        (MLP, [8, 6], one, None, [Shard(0)], None),                      # data
        (MLP, [8, 6], one, tensor_parallel, [Replicate()], None),        # tensor
        (MLP, [8, 6], two, tensor_parallel, [Shard(0), Replicate()], None),
        *[(MLP, [8, 6], one, None, [Shard(0)], stage("x", one)) for stage in stages],
        (Block, [4, 6, 8], one, None, [Shard(0)], None),                 # data
        (Block, [4, 6, 8], one, tensor_parallel, [Replicate()], None),   # tensor
        (Block, [4, 6, 8], one, None, [Shard(1)], None),                 # sequence
        (Block, [4, 6, 8], two, tensor_parallel, [Shard(0), Shard(1)], None),  # data, tensor and sequence
    ]  # fmt: skip
    if os.environ.get("OAR_TEST_MODE") != "full":  # on both grids: data, tensor, states, sequence
        cases = [cases[i] for i in ((2, 9) if dtype == "float32" else (2, 5, 9))]
    wholes = {make: trained(make, shape, dtype, None, None, [], None, steps) for make, shape in ((MLP, [8, 6]), (Block, [4, 6, 8]))}
    for make, shape, mesh, shard_fn, inputs, stage in cases:
        losses, parameters = trained(make, shape, dtype, mesh, shard_fn, inputs, stage, steps)
        what = f"{make.__name__} {dtype} {inputs} {shard_fn} {stage}"
        np.testing.assert_allclose(losses, wholes[make][0], rtol=TOLERANCE[dtype], err_msg=what)
        assert wholes[make][0][0] != wholes[make][0][-1]
        for name, value in parameters.items():
            np.testing.assert_allclose(value, wholes[make][1][name], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=f"{what} {name}")


def second_derivatives() -> None:
    mesh = started()
    rng = np.random.default_rng(1)
    x, w = oar.to_tensor(rng.standard_normal((4, 6))), oar.to_tensor(rng.standard_normal((6, 3)))

    def hessian(place_x: list, place_w: list) -> list[np.ndarray]:
        a, b = (dist.shard_tensor(t, mesh, p, stop_gradient=False) if p else t.clone() for t, p in ((x, place_x), (w, place_w)))
        a.stop_gradient = b.stop_gradient = False
        loss = nn.functional.softmax((a @ b).tanh(), axis=0).square().sum() + nn.functional.layer_norm(a, [6]).exp().mean()
        first = oar.grad(loss, [a, b], create_graph=True)
        second = oar.grad(sum((g * g).sum() for g in first), [a, b])
        return [g.numpy() for g in (*first, *second)]

    wanted = hessian([], [])
    for place_x, place_w in itertools.product([[Shard(0)], [Shard(1)], [Replicate()]], [[Shard(0)], [Shard(1)], [Replicate()]]):
        for got, want in zip(hessian(place_x, place_w), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=f"{place_x} {place_w}")


# ---- The other functions ---------------------------------------------------------------------------


def helpers() -> None:
    """parallelize, local_map, shard_dataloader, shard_scaler, files."""
    mesh = grid_of_two()
    oar.seed(3)
    net, plain = (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(2))
    plain.set_state_dict(net.state_dict())
    rules = [oar.optimizer.AdamW(0.1, parameters=layer.parameters()) for layer in (net, plain)]
    plan = {"mp_config": {"parallelize_plan": {"0": dist.ColWiseParallel(), "2": dist.RowWiseParallel()}}, "dp_config": {"sharding_level": 1}}
    net, sharded = dist.parallelize(net, rules[0], mesh, plan)
    assert net[0].weight.placements[1] == Shard(1) and net[0].bias.placements[1] == Shard(0) and net[2].weight.placements[1] == Shard(0)
    x = oar.randn([3, 4])
    scalers = [oar.amp.GradScaler(init_loss_scaling=4.0) for _ in range(2)]
    scalers[0] = dist.shard_scaler(scalers[0])
    for _ in range(3):
        for layer, rule, scaler in ((net, sharded, scalers[0]), (plain, rules[1], scalers[1])):
            scaler.scale((layer(x) ** 2).mean()).backward()
            scaler.step(rule)
            scaler.update()
            rule.clear_grad()
    for a, b in zip(net.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)

    sequence = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4))
    x = oar.randn([2, 6, 4])
    wanted = sequence(x).numpy()
    seen = []
    sequence[1].register_forward_post_hook(lambda _, inputs, output: seen.append((list(output.shape), output.placements[1])))
    dist.parallelize(sequence, None, mesh, {"mp_config": {"parallelize_plan": {"0": dist.SequenceParallelBegin(), "2": dist.SequenceParallelEnd()}}})
    np.testing.assert_allclose(sequence(x).numpy(), wanted, rtol=1e-6)
    assert seen == [([6, 2, 4], Shard(0))]

    x = dist.shard_tensor(oar.arange(8.0).reshape([4, 2]), mesh, [Replicate(), Shard(0)], stop_gradient=False)
    total = dist.local_map(lambda t: (t * t).sum(), [[Replicate(), Partial()]], [[Replicate(), Shard(0)]])(x)
    total.backward()
    assert total.item() == 140.0 and total.placements[1] == Partial()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(8.0).reshape(4, 2))
    with pytest.raises(ValueError, match="reshard_inputs=True moves it"):
        dist.local_map(lambda t: t, [[Replicate(), Shard(1)]], [[Replicate(), Shard(1)]])(x)

    data = oar.io.TensorDataset([oar.arange(8.0).reshape([8, 1])])
    batches = [batch[0] for batch in dist.shard_dataloader(oar.io.DataLoader(data, batch_size=4), mesh, shard_dims="mp")]
    assert [b.placements[1] for b in batches] == [Shard(0)] * 2 and [b.numpy()[0, 0] for b in batches] == [0.0, 4.0]
    assert batches[0]._local_value().tolist() == [[2.0 * mesh.get_rank_by_dim_and_process_id("mp", dist.get_rank()) + i] for i in range(2)]

    state = pickle.loads(pickle.dumps({key: value for key, value in net.state_dict().items()}))
    assert not state["0.weight"].is_dist()
    np.testing.assert_array_equal(state["0.weight"].numpy(), net[0].weight.numpy())
    net.set_state_dict({key: oar.zeros_like(value) for key, value in state.items()})
    assert net[0].weight.placements[1] == Shard(1) and not net[0].weight.numpy().any()
