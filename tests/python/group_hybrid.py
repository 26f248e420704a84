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
from oar.distributed.fleet.utils import context_parallel_utils as contexts


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


def captured_step(make_kit: Any, whole_program: bool = True) -> None:
    """A training step of a network that processes divide, as a program; the whole step as one, or in segments."""
    oar.seed(2)
    eager, captured = gpt.GPT(make_kit(), 1), gpt.GPT(make_kit(), 1)
    captured.set_state_dict(eager.state_dict())

    def step_of(net: nn.Layer) -> Any:
        optimizer = gpt.momentum(net.parameters()) if whole_program else fleet.distributed_optimizer(gpt.momentum(net.parameters()))

        def step(ids: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
            loss = net(ids, labels).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    one, other = step_of(eager), oar.jit.to_static(step_of(captured), full_graph=whole_program)
    segments = fleet.get_hybrid_communicate_group().get_sep_parallel_group()
    for ids, labels in gpt.batches(4):
        pair = rows_of(ids, segments, 1), rows_of(labels, segments, 1)
        np.testing.assert_allclose(other(*pair).item(), one(*pair).item(), rtol=1e-5)
    for p, wanted in zip(captured.parameters(), eager.parameters()):
        np.testing.assert_allclose(p.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)


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
    start(dp_degree=1, sharding_degree=2)
    divided_states()
    captured_step(gpt.Plain, whole_program=False)  # the processes update different weights, and send them in one order


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


def divided_states() -> None:
    """Each process has the states of the parameters that it updates, and no others."""
    group = fleet.get_hybrid_communicate_group().get_sharding_parallel_group()
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    model = fleet.distributed_model(net)
    inner = oar.optimizer.Adam(0.1, parameters=net.parameters())
    optimizer = fleet.distributed_optimizer(inner)
    model(oar.ones([2, 4])).sum().backward()
    optimizer.step()
    own = {name for states in inner._accumulators.values() for name in states}
    names: list[set[str]] = []
    dist.all_gather_object(names, own, group)
    assert own and not set.intersection(*names) and set.union(*names) == {p.name for p in net.parameters()}


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
            contexts._ROWS = 3 if shared == 2 else 512  # queries in several groups, and in one
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
