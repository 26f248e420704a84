"""What the processes of test_hybrid_parallel.py do: grids of processes, and networks that they divide."""

from __future__ import annotations

from typing import Any

import group_gpt as gpt
import numpy as np
import pytest

import oar
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet import meta_parallel
from oar.distributed.fleet.layers.mpu import random
from oar.distributed.fleet.meta_optimizers import HybridParallelGradScaler
from oar.distributed.fleet.utils import context_parallel_utils as contexts
from oar.distributed.utils import moe_utils
from oar.incubate.distributed.models import moe


def strategy_of(**settings: object) -> fleet.DistributedStrategy:
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = settings
    return strategy


def start(**settings: object) -> fleet.HybridCommunicateGroup:
    fleet.init(is_collective=True, strategy=strategy_of(**settings))
    return fleet.get_hybrid_communicate_group()


def total_over(group: dist.communication.group.Group) -> int:
    """The sum of the numbers of the processes of a group, computed by all of them."""
    total = oar.to_tensor([dist.get_rank()])
    dist.all_reduce(total, group=group)
    return int(total.item())


# The degrees of grids, and for each axis the groups, written by hand.
GRIDS = {
    2: [({"mp_degree": 2}, {"model": [[0, 1]], "data": [[0], [1]]}),
        ({"dp_degree": 2}, {"model": [[0], [1]], "data": [[0, 1]]})],
    4: [({"mp_degree": 2}, {"model": [[0, 1], [2, 3]], "data": [[0, 2], [1, 3]]}),
        ({"dp_degree": 1, "pp_degree": 2, "sharding_degree": 2}, {"sharding": [[0, 1], [2, 3]], "pipe": [[0, 2], [1, 3]]}),
        ({"sep_degree": 2, "mp_degree": 2, "order": ["mp", "dp", "pp", "sharding", "sep"]},
         {"sep": [[0, 1], [2, 3]], "model": [[0, 2], [1, 3]]})],
    8: [({"mp_degree": 2, "pp_degree": 2}, {"model": [[0, 1], [2, 3], [4, 5], [6, 7]], "pipe": [[0, 2], [1, 3], [4, 6], [5, 7]],
                                            "data": [[0, 4], [1, 5], [2, 6], [3, 7]]})],
}  # fmt: skip


def grids() -> None:
    rank, size = fleet.init(is_collective=True).worker_index(), fleet.worker_num()
    assert (rank, size) == (dist.get_rank(), dist.get_world_size()) and fleet.is_first_worker() == (rank == 0)
    assert fleet.util.all_gather(rank) == list(range(size)) and len(fleet.worker_endpoints()) == size
    assert fleet.util.all_reduce([rank, 1.5], "max").tolist() == [size - 1, 1.5] and fleet.all_reduce(1) == size
    for settings, wanted in GRIDS[size]:
        groups = start(**settings)
        for name, planes in wanted.items():
            (members,) = [plane for plane in planes if rank in plane]
            group = groups._groups[name]
            assert group.ranks == members and total_over(group) == sum(members), (settings, name, group)
        check_getters(groups, rank)
        assert start(**settings) is groups  # nothing is made twice
    for settings in ({"mp_degree": 3}, {"dp_degree": 3}, {"dp_degree": 2 * size}):
        with pytest.raises(ValueError, match=rf"hybrid_configs has .*_degree=.* processes, but there are {size}"):
            start(**settings)
    fleet.barrier_worker()


def check_getters(groups: fleet.HybridCommunicateGroup, rank: int) -> None:
    grid = groups.topology()
    place = grid.get_coord(rank)._asdict()
    for name, axis in (("data_parallel", "data"), ("model_parallel", "model"), ("sharding_parallel", "sharding"),
                       ("sep_parallel", "sep")):  # fmt: skip
        group = getattr(groups, f"get_{name}_group")()
        assert getattr(groups, f"get_{name}_rank")() == place[axis] == group.rank
        assert getattr(groups, f"get_{name}_world_size")() == grid.get_dim(axis) == group.nranks
        assert getattr(groups, f"get_{name}_group_src_rank")() == group.ranks[0]
    assert groups.get_stage_id() == place["pipe"] == groups.get_pipe_parallel_group().rank
    for group, axes in ((groups.get_check_parallel_group(), set(place) - {"data"}),
                        (groups.get_check_parallel_group(sharding=True), set(place) - {"sharding"}),
                        (groups.get_dp_sep_parallel_group(), {"data", "sep"}),
                        (groups.get_pp_mp_parallel_group(), {"pipe", "model"})):  # fmt: skip
        others = {name: number for name, number in place.items() if name not in axes}
        members = [r for r in range(grid.world_size()) if others.items() <= grid.get_coord(r)._asdict().items()]
        assert group.ranks == members and total_over(group) == sum(members)
    members, groups_of_two = groups.create_fuse_group(["sharding", "model"])
    assert groups_of_two[0].ranks == members[0] and total_over(groups_of_two[0]) == sum(members[0])
    if groups.get_pipe_parallel_world_size() > 1:
        check_neighbours(groups, rank)
    else:
        with pytest.raises(RuntimeError, match="the pipeline has one stage"):
            groups.get_p2p_groups()


def check_neighbours(groups: fleet.HybridCommunicateGroup, rank: int) -> None:
    to_next, to_previous, from_next, from_previous = groups.get_p2p_groups()
    for there, send, back, receive in ((groups.next_rank, to_next, groups.prev_rank, from_previous),
                                       (groups.prev_rank, to_previous, groups.next_rank, from_next)):  # fmt: skip
        arrived = oar.zeros([1])
        tasks = [dist.irecv(arrived, back, group=receive), dist.isend(oar.to_tensor([float(rank)]), there, group=send)]
        for task in tasks:
            task.wait()
        np.testing.assert_array_equal(arrived.numpy(), [float(back)])
    assert groups.is_first_stage == (groups.get_stage_id() == 0)
    assert groups.is_last_stage == (groups.get_stage_id() == groups.get_pipe_parallel_world_size() - 1)


# ---- Networks that are cut -----------------------------------------------------------------------


def rows_of(values: np.ndarray, group: dist.communication.group.Group, axis: int = 0) -> oar.Tensor:
    """The part of a batch that this process gets."""
    return oar.to_tensor(np.split(values, group.nranks, axis=axis)[group.rank])


def train_as_one(kit: gpt.Plain, dtype: str, steps: int = 20, make_optimizer: Any = gpt.momentum) -> None:
    """Trains a network that processes divide, and the same network in this process alone."""
    oar.set_default_dtype(dtype)
    groups = fleet.get_hybrid_communicate_group()
    oar.seed(11)
    whole = gpt.GPT(gpt.Plain())
    net = gpt.GPT(kit)
    gpt.take_weights(net, whole)
    model = fleet.distributed_model(net)
    if isinstance(kit, gpt.Sequences):
        gpt.sequences.register_sequence_parallel_allreduce_hooks(net)
    optimizer = fleet.distributed_optimizer(make_optimizer(net.parameters()))
    wanted = gpt.trained_alone(steps, make_optimizer, whole)
    copies = groups.create_fuse_group(["data", "sharding"])[1][0]
    for (ids, labels), value in zip(gpt.batches(steps), wanted):
        parts = (rows_of(values, copies) for values in (ids, labels))
        loss = model(*(rows_of(part.numpy(), groups.get_sep_parallel_group(), 1) for part in parts)).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        np.testing.assert_allclose(gpt.average_over(loss, copies), value, rtol=gpt.tolerance_of(dtype))
    assert wanted[-1] < wanted[0]
    gpt.same_weights(net, whole, gpt.tolerance_of(dtype))
    oar.set_default_dtype("float32")


def strategies_of_two() -> None:
    start(dp_degree=1, sep_degree=2)
    attention()
    train_segments()
    captured_step(lambda: gpt.Segments(contexts.ring_attention))
    for dtype in ("float32", "float64"):
        start(mp_degree=2)
        train_as_one(gpt.Tensors(), dtype)
        train_as_one(gpt.Sequences(), dtype)
        start(dp_degree=2)
        train_as_one(gpt.Plain(), dtype)


def strategies_of_four() -> None:
    start(dp_degree=1, sep_degree=4)
    attention()
    for dtype in ("float32", "float64"):
        start(dp_degree=2, mp_degree=2)
        train_as_one(gpt.Tensors(), dtype)
        start(sharding_degree=2, mp_degree=2)
        train_as_one(gpt.Tensors(), dtype)
        start(dp_degree=1, sep_degree=2, mp_degree=2)
        train_as_one(gpt.TensorsAndSegments(contexts.ring_attention), dtype)
    start(sharding_degree=2, dp_degree=2)
    train_as_one(gpt.Plain(), "float64")


# ---- Sequences that are cut ----------------------------------------------------------------------


def attention() -> None:
    """Values and gradients of attention over pieces, against attention over the whole in NumPy's precision."""
    start(dp_degree=1, sep_degree=dist.get_world_size())
    group = fleet.get_hybrid_communicate_group().get_sep_parallel_group()
    random = np.random.default_rng(3)
    heads = 2 * group.nranks
    for shared, causal in ((1, False), (1, True), (2, True)):
        shapes = [(2, 4 * group.nranks, heads, 5), *[(2, 4 * group.nranks, heads // shared, 5)] * 2]
        arrays = [random.normal(size=shape) for shape in (*shapes, shapes[0])]
        whole = [oar.to_tensor(x, stop_gradient=False) for x in arrays[:3]]
        repeated = [whole[0], *[oar.repeat_interleave(x, shared, axis=2) for x in whole[1:]]]
        out = oar.nn.functional.scaled_dot_product_attention(*repeated, is_causal=causal)
        (out * oar.to_tensor(arrays[3])).sum().backward()
        for function in (contexts.ring_attention, contexts.segment_attention):
            pieces = [rows_of(x, group, 1) for x in arrays]
            for piece in pieces[:3]:
                piece.stop_gradient = False
            mine = function(*pieces[:3], is_causal=causal)
            (mine * pieces[3]).sum().backward()
            np.testing.assert_allclose(mine.numpy(), rows_of(out.numpy(), group, 1).numpy(), rtol=1e-12, atol=1e-13)
            for piece, tensor in zip(pieces, whole):
                np.testing.assert_allclose(piece.grad.numpy(), rows_of(tensor.grad.numpy(), group, 1).numpy(), rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match=r"\[ring_attention\] query has 3 heads, and key 2"):
        contexts.ring_attention(oar.ones([1, 2, 3, 4]), oar.ones([1, 2, 2, 4]), oar.ones([1, 2, 2, 4]))


def train_segments() -> None:
    for dtype in ("float32", "float64"):
        for function in (contexts.ring_attention, contexts.segment_attention):
            train_as_one(gpt.Segments(function), dtype)


# ---- Experts and norms ---------------------------------------------------------------------------


class Experts(nn.Layer):
    """A network with a layer of experts, of which this process has a part."""

    def __init__(
        self, gate: str, capacity: float, group: dist.communication.group.Group | None = None, shares_rows: bool = False
    ) -> None:
        super().__init__()
        here = 4 if group is None else 4 // group.nranks
        self.enter, self.leave = nn.Linear(6, 8), nn.Linear(8, 3)
        experts = nn.LayerList([nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8)) for _ in range(here)])
        self.middle = moe.MoELayer(8, experts, {"type": gate, "top_k": 1 if gate == "switch" else 2}, group,
                                   group if shares_rows else None, recompute_interval=int(shares_rows))
        self.middle.gate.capacity, self.middle.gate.random_routing = (capacity, capacity), False
        self.middle.gate.switch_eps = 0.0

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return self.leave(nn.functional.relu(self.middle(self.enter(x))))


def experts_of_whole(name: str, group: dist.communication.group.Group) -> str:
    """The name in the whole network of a parameter of this process."""
    parts = name.split(".")
    if "experts" in parts:
        place = parts.index("experts") + 1
        parts[place] = str(int(parts[place]) + group.rank * (4 // group.nranks))
    return ".".join(parts)


def experts() -> None:
    """MoELayer over processes, against all experts in one: each process has a part of the batch, or does a part of its rows."""
    size = dist.get_world_size()
    for dtype, gate in (("float64", "gshard"), ("float64", "switch"), ("float64", "naive"), ("float32", "gshard")):
        oar.set_default_dtype(dtype)
        group = start(dp_degree=size).get_data_parallel_group()
        train_experts(gate, group, shares_rows=False)
    oar.set_default_dtype("float64")
    train_experts("gshard", start(mp_degree=size).get_model_parallel_group(), shares_rows=True)
    oar.set_default_dtype("float32")
    rows_to_experts(group)


def train_experts(gate: str, group: dist.communication.group.Group, shares_rows: bool) -> None:
    oar.seed(4)
    dtype, capacity = oar.get_default_dtype(), 0.7  # some rows find no place
    whole, net = Experts(gate, capacity / group.nranks), Experts(gate, capacity, group, shares_rows)
    weights = {name: value.numpy() for name, value in whole.named_parameters()}
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[experts_of_whole(name, group)])
    model = fleet.distributed_model(net)
    clips = nn.ClipGradByGlobalNorm(0.05), moe.ClipGradForMOEByGlobalNorm(0.05, moe_group=group)
    alone, together = (oar.optimizer.Momentum(0.5, 0.9, n.parameters(), grad_clip=c) for n, c in zip((whole, net), clips))
    optimizer = fleet.distributed_optimizer(together)
    numbers = np.random.default_rng(9)
    for _ in range(20):
        x, y = numbers.normal(size=(4, 5, 6)).astype(dtype), numbers.normal(size=(4, 5, 3)).astype(dtype)
        loss = nn.functional.mse_loss(whole(oar.to_tensor(x)), oar.to_tensor(y))
        parts = [oar.to_tensor(part) if shares_rows else rows_of(part, group) for part in (x, y)]
        mine = nn.functional.mse_loss(model(parts[0]), parts[1])
        loss.backward()
        mine.backward()
        for parameter in net.middle.experts.parameters():
            if parameter.grad is not None and not shares_rows:
                parameter.grad = parameter.grad / group.nranks  # the average of the losses, not their sum
        for one in (alone, optimizer):
            one.step()
            one.clear_grad(False)
        np.testing.assert_allclose(gpt.average_over(mine, group), loss.item(), rtol=gpt.tolerance_of(dtype))
    for name, parameter in net.named_parameters():
        wanted = dict(whole.named_parameters())[experts_of_whole(name, group)].numpy()
        np.testing.assert_allclose(parameter.numpy(), wanted, rtol=0, atol=gpt.tolerance_of(dtype) * np.abs(wanted).max())


def rows_to_experts(group: dist.communication.group.Group) -> None:
    """global_scatter and global_gather: each row knows where it belongs."""
    experts_here, size = 2, group.nranks
    counts = [[(r + e) % 3 for e in range(experts_here * size)] for r in range(size)]  # of process r for expert e
    local = counts[group.rank]
    everywhere = [counts[r][group.rank * experts_here + e] for r in range(size) for e in range(experts_here)]
    rows = [[group.rank, e, i] for e, n in enumerate(local) for i in range(n)]
    x = oar.to_tensor(np.array(rows, "float64").reshape(-1, 3), stop_gradient=False)
    arrived = moe_utils.global_scatter(x, oar.to_tensor(local), oar.to_tensor(everywhere), group)
    wanted = [[r, group.rank * experts_here + e, i] for e in range(experts_here) for r in range(size)
              for i in range(counts[r][group.rank * experts_here + e])]
    np.testing.assert_array_equal(arrived.numpy(), np.array(wanted).reshape(-1, 3))
    back = moe_utils.global_gather(arrived * 2, oar.to_tensor(local), oar.to_tensor(everywhere), group)
    np.testing.assert_array_equal(back.numpy(), 2 * x.numpy())
    weights = oar.to_tensor(np.arange(x.numel().item(), dtype="float64").reshape(x.shape))
    (back * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * weights.numpy())


def batch_norms() -> None:
    """SyncBatchNorm over batches of different sizes, against one batch norm over all rows."""
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    random = np.random.default_rng(2)
    ends = np.cumsum([2 + r for r in range(size)])
    for shape, form in (((ends[-1], 3, 4, 2), "NCHW"), ((ends[-1], 4, 2, 3), "NHWC")):
        x, weights = random.normal(2.0, 3.0, shape), random.normal(size=shape)
        layer, whole = nn.SyncBatchNorm(3, data_format=form), nn.BatchNorm2D(3, data_format=form)
        for norm in (layer, whole):
            norm.to(dtype="float64")
            norm.weight.set_value(np.array([1.0, 2.0, 0.5]))
        here = slice(ends[rank] - 2 - rank, ends[rank])
        everything, mine = (oar.to_tensor(part, stop_gradient=False) for part in (x, x[here]))
        for _ in range(2):
            out, wanted = layer(mine), whole(everything)
        np.testing.assert_allclose(out.numpy(), wanted.numpy()[here], rtol=1e-12, atol=1e-12)
        (out * oar.to_tensor(weights[here])).sum().backward()
        (wanted * oar.to_tensor(weights)).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy(), everything.grad.numpy()[here], rtol=1e-10, atol=1e-12)
        for mine_, all_ in zip(layer.parameters(), whole.parameters(), strict=True):
            if mine_.stop_gradient:  # the running statistics
                np.testing.assert_allclose(mine_.numpy(), all_.numpy(), rtol=1e-12)
            else:
                dist.all_reduce(mine_.grad)
                np.testing.assert_allclose(mine_.grad.numpy(), all_.grad.numpy(), rtol=1e-11)
        layer.eval()
        whole.eval()
        np.testing.assert_allclose(layer(mine).numpy(), whole(everything).numpy()[here], rtol=1e-12, atol=1e-12)


def experts_and_norms() -> None:
    batch_norms()
    experts()


# ---- Details of cut layers -----------------------------------------------------------------------


def details() -> None:
    groups = start(mp_degree=2)
    group = groups.get_model_parallel_group()
    cut_layers(group)
    lookups(group)
    parallel_losses(group)
    random_streams(group)
    scalers(groups)
    accumulated_sequences(group)
    gradients_of_parts(group)
    captured_step(gpt.Tensors)
    static_split(group)


def cut_layers(group: dist.communication.group.Group) -> None:
    """The forms that the GPT does not use: gathered outputs, whole inputs, weights drawn apart, inputs from the first process."""
    column, row = meta_parallel.ColumnParallelLinear(6, 4, has_bias=True), meta_parallel.RowParallelLinear(4, 6)
    assert column.weight.shape == [6, 2] and column.weight.is_distributed and column.weight.split_axis == 1
    assert row.weight.split_axis == 0 and not getattr(row.bias, "is_distributed", False)
    parts: list[oar.Tensor] = []
    dist.all_gather(parts, column.weight, group)
    assert not np.allclose(parts[0].numpy(), parts[1].numpy())  # the pieces begin with different numbers
    whole = oar.concat(parts, axis=1)
    whole.stop_gradient = False
    x = oar.randn([3, 6])
    dist.broadcast(x, group.ranks[0], group)
    x.stop_gradient = False
    out = row(column(x))
    rows: list[oar.Tensor] = []
    dist.all_gather(rows, row.weight, group)
    twin = x.detach()
    twin.stop_gradient = False
    wanted = twin @ whole @ oar.concat(rows)
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=2e-5, atol=1e-6)
    out.square().sum().backward()
    wanted.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), twin.grad.numpy(), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(column.weight.grad.numpy(), np.split(whole.grad.numpy(), 2, 1)[group.rank], rtol=2e-5, atol=1e-5)
    for make, text in ((lambda: meta_parallel.ColumnParallelLinear(6, 5), r"out_features is 5, which 2 processes cannot divide"),
                       (lambda: meta_parallel.RowParallelLinear(5, 6), r"in_features is 5"),
                       (lambda: meta_parallel.VocabParallelEmbedding(7, 6), r"num_embeddings is 7")):  # fmt: skip
        with pytest.raises(AssertionError, match=text):
            make()
    with pytest.raises(ValueError, match=r"\[_c_split\] axis 1 .* \[3, 5\] cannot be cut into 2 equal parts"):
        gpt.mp_ops._c_split(oar.ones([3, 5]), group)
    model = fleet.distributed_model(nn.Linear(2, 2))
    given = oar.full([1, 2], float(group.rank + 1))
    model(given)
    assert given.tolist() == [[1.0, 1.0]]  # what the first process has passed


def lookups(group: dist.communication.group.Group) -> None:
    table = oar.arange(6, dtype="float32").reshape([3, 2])
    ids = oar.to_tensor([0, 2, 3, 5])
    own = gpt.mp_ops._c_lookup_table(table, ids, 3 * group.rank, 6)
    kept = slice(2 * group.rank, 2 * group.rank + 2)
    assert own[kept].tolist() == [[0, 1], [4, 5]] and float(own.abs().sum()) == 10
    bad = oar.to_tensor([-1]) if group.rank == 0 else oar.to_tensor([6])
    with pytest.raises((ValueError, IndexError), match="embedding"):
        gpt.mp_ops._c_lookup_table(table, bad, 3 * group.rank, 6)


def parallel_losses(group: dist.communication.group.Group) -> None:
    numbers = np.random.default_rng(1)
    logits, labels = numbers.normal(0.0, 30.0, (2, 3, 8)), np.array([[0, 7, -100], [3, 4, 5]])
    loss_of = meta_parallel.ParallelCrossEntropy()
    whole = oar.to_tensor(logits, stop_gradient=False)
    piece = rows_of(logits, group, 2)
    piece.stop_gradient = False
    weights = oar.to_tensor(numbers.normal(size=(2, 3, 1)))
    wanted = nn.functional.softmax_with_cross_entropy(whole, oar.to_tensor(labels).unsqueeze(-1))
    losses = loss_of(piece, oar.to_tensor(labels))
    np.testing.assert_allclose(losses.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-13)
    (losses * weights).sum().backward()
    (wanted * weights).sum().backward()
    np.testing.assert_allclose(piece.grad.numpy(), np.split(whole.grad.numpy(), 2, 2)[group.rank], rtol=1e-11, atol=1e-14)
    _, softmax = gpt.mp_ops._c_softmax_with_cross_entropy(piece, oar.to_tensor(labels), group, return_softmax=True)
    np.testing.assert_allclose(softmax.numpy(), np.split(nn.functional.softmax(whole).numpy(), 2, 2)[group.rank], rtol=1e-12)
    half = loss_of(piece.astype("bfloat16"), oar.to_tensor(labels))
    assert half.dtype == oar.bfloat16
    bad = oar.to_tensor([[-3]]) if group.rank == 0 else oar.to_tensor([[8]])
    with pytest.raises((ValueError, IndexError), match="take_along_axis"):
        gpt.mp_ops._of_label(oar.ones([1, 4]), bad, bad == -100, group)


def random_streams(group: dist.communication.group.Group) -> None:
    """Dropout differs among the processes inside of the stream, and is the same outside; what is drawn inside moves nothing outside."""
    meta_parallel.model_parallel_random_seed(21)
    tracker, x = meta_parallel.get_rng_state_tracker(), oar.ones([64])
    draws = []
    for _ in range(2):
        outside = nn.functional.dropout(x, 0.5)
        with tracker.rng_state():
            inside = nn.functional.dropout(x, 0.5)
        draws.append((outside, inside))
    inside = random.dropout(x, 0.5, rng_name="model_parallel_rng")
    draws.append((nn.functional.dropout(x, 0.5), inside))
    for outside, inside in draws:
        for mask, differ in ((outside, False), (inside, True)):
            parts: list[oar.Tensor] = []
            dist.all_gather(parts, mask, group)
            assert np.array_equal(parts[0].numpy(), parts[1].numpy()) != differ
    assert not np.array_equal(draws[0][1].numpy(), draws[1][1].numpy())
    meta_parallel.model_parallel_random_seed()  # drawn by the first process
    parts = []
    dist.all_gather(parts, oar.rand([4]), group)
    assert parts[0].tolist() == parts[1].tolist()


def scalers(groups: fleet.HybridCommunicateGroup) -> None:
    """An infinity in one process skips the step in all of them."""
    with pytest.raises(NotImplementedError, match="ClipGradByNorm would take the norm of a piece"):
        fleet.distributed_optimizer(oar.optimizer.SGD(1.0, nn.Linear(2, 1).parameters(), grad_clip=nn.ClipGradByNorm(1.0)))
    for make in (fleet.distributed_scaler, lambda scaler: HybridParallelGradScaler(scaler, groups)):
        net = nn.Linear(2, 1)
        optimizer = fleet.distributed_optimizer(oar.optimizer.SGD(1.0, parameters=net.parameters()))
        scaler = make(oar.amp.GradScaler(init_loss_scaling=8.0))
        before = net.weight.numpy()
        for value, moves in (("inf", False), ("1", True)):
            factor = float(value) if groups.get_model_parallel_rank() == 1 else 1.0
            scaler.scale((net(oar.ones([1, 2])) * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            assert (net.weight.numpy() != before).all() == moves
        assert scaler.scale(oar.to_tensor(1.0)).item() == 4.0


def accumulated_sequences(group: dist.communication.group.Group) -> None:
    """Gradients of marked parameters are added up over the processes in the last of several passes."""
    net = nn.Linear(1, 1)
    gpt.sequences.mark_as_sequence_parallel_parameter(net.weight)
    gpt.sequences.register_sequence_parallel_allreduce_hooks(net, accumulation_steps=2)
    for number in (1, 2):
        (net(oar.full([1, 1], 1.0)) * (10 * number + group.rank)).sum().backward()
        assert net.weight.grad.item() == {1: 10 + group.rank, 2: 10 + 11 + 20 + 21}[number]
    assert net.bias.grad.item() == 30 + 2 * group.rank


def gradients_of_parts(group: dist.communication.group.Group) -> None:
    """The pairs of ops that cut and join, against differences of the loss that all processes compute; second derivatives, too."""
    random = np.random.default_rng(8)
    weights = oar.to_tensor(random.normal(size=(4, 6)))

    def loss_of(values: np.ndarray, axis: int) -> tuple[oar.Tensor, oar.Tensor]:
        x = oar.to_tensor(values, stop_gradient=False)
        part = gpt.mp_ops.own_part(x, axis, group) ** 3
        return (gpt.mp_ops.joined(part, axis, group, shared=True) * weights).sum(), x

    for axis in (0, 1, -1):
        values = random.normal(size=(4, 6))
        loss, x = loss_of(values, axis)
        (first,) = oar.grad([loss], [x], create_graph=True)
        np.testing.assert_allclose(first.numpy(), 3 * values**2 * weights.numpy(), rtol=1e-12)
        (second,) = oar.grad([first.sum()], [x])
        np.testing.assert_allclose(second.numpy(), 6 * values * weights.numpy(), rtol=1e-12)
        shifted = values.copy()
        shifted[1, 2] += 1e-6
        slope = (loss_of(shifted, axis)[0] - loss).item() / 1e-6
        np.testing.assert_allclose(first[1, 2].item(), slope, rtol=1e-4, atol=1e-6)


def captured_step(make_kit: Any) -> None:
    """A whole training step of a network that processes divide, as one program."""
    oar.seed(2)
    eager, captured = gpt.GPT(make_kit(), 1), gpt.GPT(make_kit(), 1)
    captured.set_state_dict(eager.state_dict())

    def step_of(net: nn.Layer) -> Any:
        optimizer = gpt.momentum(net.parameters())

        def step(ids: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
            loss = net(ids, labels).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    one, other = step_of(eager), oar.jit.to_static(step_of(captured), full_graph=True)
    segments = fleet.get_hybrid_communicate_group().get_sep_parallel_group()
    for ids, labels in gpt.batches(4):
        pair = rows_of(ids, segments, 1), rows_of(labels, segments, 1)
        np.testing.assert_allclose(other(*pair).item(), one(*pair).item(), rtol=1e-5)
    for p, wanted in zip(captured.parameters(), eager.parameters()):
        np.testing.assert_allclose(p.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)


def static_split(group: dist.communication.group.Group) -> None:
    oar.enable_static()
    main, startup = oar.static.Program(), oar.static.Program()
    with oar.static.program_guard(main, startup):
        ids = oar.static.data("ids", [2, 3], "int64")
        hidden = dist.split(ids, (8, 6), "embedding", num_partitions=2)
        hidden = dist.split(hidden, (6, 4), "linear", axis=1, num_partitions=2, bias_attr=False)
        out = dist.split(hidden, (4, 5), "linear", axis=0, num_partitions=2)
        with pytest.raises(AssertionError, match="num_partitions is 3, but there are 2 processes"):
            dist.split(ids, (9, 6), "embedding", num_partitions=3)
    run = oar.static.Executor()
    run.run(startup)
    (found,) = run.run(main, feed={"ids": np.array([[0, 1, 2], [5, 6, 7]])}, fetch_list=[out])
    oar.disable_static()
    parts: list[oar.Tensor] = []
    dist.all_gather(parts, oar.to_tensor(found), group)
    assert parts[0].shape == [2, 3, 5] and np.array_equal(parts[0].numpy(), parts[1].numpy())
    with pytest.raises(ValueError, match="outside of static programs"):
        dist.split(oar.ones([2, 3]), (3, 4), "linear")
