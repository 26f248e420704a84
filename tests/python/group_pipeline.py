"""What the processes of test_pipeline.py train, and the same by one process."""

from __future__ import annotations

from typing import Any

import numpy as np

import oar
from group_work import started
from oar import distributed as dist
from oar import nn
from oar.distributed import fleet
from oar.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc

WORDS, WIDTH, LENGTH, STEPS = 11, 6, 4, 20


class Mixed(nn.Layer):
    """Takes and returns two tensors: one of numbers, one of words that need no gradient."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm, self.up, self.down, self.drop = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.Dropout(dropout)

    def forward(self, given: Any) -> Any:
        hidden, words = given
        return hidden + self.drop(self.down(nn.functional.gelu(self.up(self.norm(hidden))))), words


class Words(nn.Layer):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, words: oar.Tensor) -> Any:
        return self.table(words), words


def scores(layer: Words, given: Any) -> oar.Tensor:
    """The weight of the embedding once more, and a sum with the words themselves."""
    hidden, words = given
    return oar.matmul(hidden, layer.table.weight, transpose_y=True) + 0.01 * words.astype(hidden.dtype).unsqueeze(-1)


def loss(given: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
    return nn.functional.cross_entropy(given.reshape([-1, WORDS]), labels.reshape([-1]))


def layers(blocks: int) -> list[Any]:
    return [SharedLayerDesc("words", Words, None, "table.weight", WORDS, WIDTH), *[LayerDesc(Mixed, WIDTH) for _ in range(blocks)],
            SharedLayerDesc("words", Words, scores, "table.weight", WORDS, WIDTH)]


def made(dtype: str, blocks: int, **how: Any) -> PipelineLayer:
    with oar.utils.unique_name.guard():
        oar.set_default_dtype(dtype)
        oar.seed(5)
        net = PipelineLayer(layers(blocks), loss_fn=loss, **how)
        oar.set_default_dtype("float32")
    return net


def batches(rows: int, steps: int = STEPS) -> np.ndarray:
    return np.random.default_rng(3).integers(0, WORDS, (steps, rows, LENGTH + 1))


def optimizer_of(net: nn.Layer, clip: bool) -> Any:
    return oar.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.3) if clip else None)


def alone(dtype: str, blocks: int, rows: int, clip: bool, steps: int = STEPS) -> tuple[list[float], dict[str, np.ndarray]]:
    """One process with the whole batch."""
    net = made(dtype, blocks, num_stages=1)
    optimizer = optimizer_of(net, clip)
    losses = []
    for words in batches(rows, steps):
        value = loss(net(oar.to_tensor(words[:, :-1])), oar.to_tensor(words[:, 1:]))
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(value.item())
    return losses, {name: tensor.numpy() for name, tensor in net.state_dict().items()}


def strategy_of(kind: str, micro_batches: int, rows: int, **degrees: int) -> fleet.DistributedStrategy:
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 1, **degrees}
    strategy.pipeline_configs = {"accumulate_steps": micro_batches, "micro_batch_size": rows // micro_batches, "schedule_mode": kind}
    return strategy


def run(kind: str, micro_batches: int, chunks: int, dtype: str, clip: bool, how: dict[str, Any], steps: int = STEPS) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    rows, blocks = 2 * micro_batches, max(size * chunks - 2, 2) + 1
    fleet.init(is_collective=True, strategy=strategy_of(kind, micro_batches, rows, pp_degree=size))
    net = made(dtype, blocks, num_stages=size, num_virtual_pipeline_stages=chunks, **how)
    model = fleet.distributed_model(net)
    optimizer = fleet.distributed_optimizer(optimizer_of(net, clip))
    wanted, states = alone(dtype, blocks, rows, clip, steps)
    losses = []
    for words in batches(rows, steps):
        # The other stages need no data: theirs is wrong on purpose.
        inputs = words[:, :-1] if rank == 0 else words[:, :-1] * 0
        labels = words[:, 1:] if rank == size - 1 else words[:, 1:] * 0
        losses.append(model.train_batch((oar.to_tensor(inputs), oar.to_tensor(labels)), optimizer).item())
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    what = f"{kind} {size} stages {micro_batches} micro-batches {chunks} chunks {dtype} {how}"
    np.testing.assert_allclose(losses, wanted, rtol=tolerance, err_msg=what)
    own = net.state_dict()
    assert own and (size == 1 or len(own) < len(states))
    for name, tensor in own.items():
        np.testing.assert_allclose(tensor.numpy(), states[name], rtol=tolerance, atol=tolerance, err_msg=f"{what} {name}")
    last = batches(rows, 1)[0]
    evaluated = model.eval_batch((oar.to_tensor(last[:, :-1]), oar.to_tensor(last[:, 1:])))
    assert np.isfinite(evaluated.item()) and net.training


def schedules() -> None:
    """Every schedule, with more and fewer micro-batches than stages."""
    _, size = started()
    run("1F1B", size + 1, 1, "float32", False, {"recompute_interval": 1})
    run("1F1B", 1, 1, "float64", True, {"seg_method": "parameters"}, steps=8)
    run("F-then-B", 3, 1, "float64", True, {"seg_method": "uniform"}, steps=8)
    run("1F1B", 2 * size + 1, 2, "float64", False, {"recompute_interval": 2}, steps=8)
    run("ZBH1", size + 2, 1, "float64", True, {}, steps=8)
    run("ZBVPP", 3, 2, "float32", False, {}, steps=8)


def with_copies(folder: str) -> None:
    """Two pipelines of two stages, each with half of the batch; their copies divide the states of the optimiser, or do not."""
    started()
    wanted, states = alone("float64", 4, 12, True, 6)
    for axis in ("dp", "sharding"):
        fleet.init(is_collective=True, strategy=strategy_of("1F1B", 3, 6, **{"pp_degree": 2, "dp_degree": 1, f"{axis}_degree": 2}))
        groups = fleet.get_hybrid_communicate_group()
        copies = groups.get_data_parallel_group() if axis == "dp" else groups.get_sharding_parallel_group()
        net = made("float64", 4, topology=groups.topology())
        if copies.rank:
            for p in net.parameters():  # those of the first copy count
                p.set_value(oar.zeros_like(p))
        model = fleet.distributed_model(net)
        optimizer = fleet.distributed_optimizer(optimizer_of(net, True))
        losses = []
        for words in batches(12, 6):
            own = words[copies.rank * 6 :][:6]
            losses.append(model.train_batch((oar.to_tensor(own[:, :-1]), oar.to_tensor(own[:, 1:])), optimizer).item())
        mean = oar.to_tensor(losses, "float64")
        dist.all_reduce(mean, dist.ReduceOp.AVG, copies)
        np.testing.assert_allclose(mean.numpy(), wanted, rtol=1e-12, err_msg=axis)
        for name, tensor in net.state_dict().items():
            np.testing.assert_allclose(tensor.numpy(), states[name], rtol=1e-12, atol=1e-12, err_msg=f"{axis} {name}")
    # The layers of all stages, in one checkpoint.
    dist.save_state_dict(net.state_dict(), folder)
    merged = dist.load_merged_state_dict(folder)
    assert set(merged) == set(states)
    for name, tensor in merged.items():
        np.testing.assert_allclose(tensor.numpy(), states[name], rtol=1e-12, atol=1e-12, err_msg=name)


def details() -> None:
    """A scaler, several losses, lists of micro-batches, deferred weights, shapes that change."""
    rank, size = started()
    fleet.init(is_collective=True, strategy=strategy_of("ZBH1", 2, 4, pp_degree=size))
    net = made("float32", 3, num_stages=size, seg_method=[0, 2])
    assert net.segment_parts == [0, 2, 5] and [net.get_stage_from_index(i) for i in range(5)] == [0, 0, 1, 1, 1]
    net._loss_fn = [loss, lambda given, labels: loss(given, labels) * 3]
    model = fleet.distributed_model(net)
    deferred = []
    put = model._weights.put
    model._weights.put = lambda work: (deferred.append(work), put(work))
    optimizer = fleet.distributed_optimizer(optimizer_of(net, False))
    words = batches(4, 1)[0]
    x, y = oar.to_tensor(words[:, :-1]), oar.to_tensor(words[:, 1:])
    first = model.eval_batch((x, y))
    assert abs(model.eval_batch((x, y), loss_fn_idx=1).item() - 3 * first.item()) < 1e-5
    results = model.eval_batch((x, y), compute_loss=False)
    assert results is None if rank < size - 1 else [list(r.shape) for r in results] == [[2, LENGTH, WORDS]] * 2
    before = [p.clone() for p in net.parameters()]
    scaler = fleet.distributed_scaler(oar.amp.GradScaler(init_loss_scaling=4.0, decr_every_n_nan_or_inf=1))
    losses = model.train_batch(([x[:2], x[2:]], [y[:2], y[2:]]), optimizer, scaler=scaler, return_micro_batch_loss=True)
    assert losses.shape == [2] and abs(losses.mean().item() - first.item()) < 1e-5
    assert deferred, "no gradient of a weight was computed later"
    assert not all(oar.equal_all(p, q).item() for p, q in zip(net.parameters(), before))
    # An infinity in one stage: no stage takes the step.
    before = [p.clone() for p in net.parameters()]
    if rank == 0:
        handle = net.parameters()[0].register_hook(lambda gradient: gradient * float("inf"))
    model.train_batch((x, y), optimizer, scaler=scaler)
    assert all(oar.equal_all(p, q).item() for p, q in zip(net.parameters(), before))
    assert scaler.state_dict()["scale"].item() == 2.0
    if rank == 0:
        handle.remove()
    schedule = oar.optimizer.lr.StepDecay(0.1, 1)
    model.train_batch((x, y), optimizer, lr_scheduler=schedule)
    assert schedule.last_epoch == 1
    changing(rank, size)


def changing(rank: int, size: int) -> None:
    """Micro-batches of different lengths."""
    words = batches(4, 1)[0]
    x, y = oar.to_tensor(words[:, :-1]), oar.to_tensor(words[:, 1:])
    pairs = [[x[:2], x[2:, :2]], [y[:2], y[2:, :2]]]
    strategy = strategy_of("1F1B", 2, 4, pp_degree=size)
    strategy.pipeline_configs = {**strategy.pipeline_configs, "p2p_cache_shape": False}
    fleet.init(is_collective=True, strategy=strategy)
    net = made("float32", 3, num_stages=size)
    model = fleet.distributed_model(net)
    wanted = made("float32", 3, num_stages=1)
    losses = model.eval_batch(tuple(pairs))
    expected = np.mean([loss(wanted(a), b).item() for a, b in zip(*pairs)])
    assert abs(losses.item() - expected) < 1e-5


def changing_shapes() -> None:
    """The same without the setting for it: an error."""
    _, size = started()
    fleet.init(is_collective=True, strategy=strategy_of("1F1B", 2, 4, pp_degree=size))
    model = fleet.distributed_model(made("float32", 3, num_stages=size))
    words = oar.to_tensor(batches(4, 1)[0])
    model.eval_batch(([words[:2], words[2:, :2]], [words[:2], words[2:, :2]]))
