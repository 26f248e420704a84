"""What the processes of test_sharding.py train, and the same by one process."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import oar
from group_work import started
from oar import distributed as dist
from oar import nn
from oar.distributed.fleet.utils import recompute
from oar.distributed.fleet.meta_parallel.sharding.group_sharded_optimizer_stage2 import GroupShardedOptimizerStage2
from oar.distributed.fleet.meta_parallel.sharding.group_sharded_stage2 import GroupShardedStage2
from oar.distributed.fleet.meta_parallel.sharding.group_sharded_stage3 import GroupShardedStage3
from oar.distributed.sharding import group_sharded_parallel, save_group_sharded_model

STEPS = 20
LEVELS = ("os", "os_g", "p_g_os")


class Block(nn.Layer):
    def __init__(self, width: int, again: bool) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.again = again

    def _inner(self, x: oar.Tensor) -> oar.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return recompute(self._inner, x) if self.again else self._inner(x)


class Words(nn.Layer):
    """A small language model: its last weight is that of the embedding, read outside of that layer; one layer is not used."""

    def __init__(self, words: int = 11, width: int = 6, again: bool = False, blocks: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.LayerList([Block(width, again) for _ in range(blocks)])
        self.idle = nn.Linear(3, 3)
        self.scale = self.create_parameter([], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        hidden = self.embed(x)
        for block in self.blocks:
            hidden = block(hidden)
        return oar.matmul(hidden, self.embed.weight, transpose_y=True) * self.scale


def network(dtype: str, again: bool = False) -> nn.Layer:
    with oar.utils.unique_name.guard():
        oar.set_default_dtype(dtype)
        oar.seed(5)
        net = Words(again=again)
        oar.set_default_dtype("float32")
    return net


def batches(steps: int = STEPS) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 11, (steps, 24, 5))


def loss_of(net: nn.Layer, words: np.ndarray) -> oar.Tensor:
    x = oar.to_tensor(words)
    return nn.functional.cross_entropy(net(x[:, :-1]), x[:, 1:])


def trained(net: nn.Layer, optimizer: Any, rank: int = 0, size: int = 1, accumulate: int = 1, steps: int = STEPS, keep: bool = False) -> np.ndarray:
    """Trains on a part of each batch; returns the losses of the whole batches."""
    losses = []
    for words in batches(steps):
        own = words[rank * 24 // size : (rank + 1) * 24 // size]
        total = 0.0
        for number, part in enumerate(np.split(own, accumulate)):
            loss = loss_of(net, part) / accumulate
            if keep and number + 1 < accumulate:
                with net.no_sync():
                    loss.backward()
            else:
                loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        losses.append(total)
    mean = oar.to_tensor(losses, "float64")
    if size > 1:
        dist.all_reduce(mean, dist.ReduceOp.AVG)
    return mean.numpy()


def adam(net: nn.Layer, clip: Any = None) -> oar.optimizer.Optimizer:
    rate = oar.optimizer.lr.StepDecay(0.01, step_size=5)
    return oar.optimizer.AdamW(rate, parameters=net.parameters(), grad_clip=clip, apply_decay_param_fun=lambda name: "norm" not in name)


def momentum(net: nn.Layer, clip: Any = None) -> oar.optimizer.Optimizer:
    return oar.optimizer.Momentum(0.05, parameters=net.parameters(), grad_clip=clip, weight_decay=0.01)


def same(net: nn.Layer, twin: nn.Layer, tolerance: float) -> None:
    with net.whole_parameters():
        for (name, p), (_, wanted) in zip(net._layers.named_parameters(), twin.named_parameters()):
            assert p.shape == wanted.shape
            np.testing.assert_allclose(p.numpy(), wanted.numpy(), rtol=tolerance, atol=tolerance, err_msg=name)


def stages() -> None:
    """Each stage against one process: float32 and float64, clips, accumulated steps, recomputation."""
    rank, size = started()
    cases: list[tuple[str, Callable, Any, int, bool, bool]] = [
        ("float32", adam, None, 1, False, False),
        ("float64", adam, nn.ClipGradByGlobalNorm(0.05), 2, False, True),
        ("float64", momentum, nn.ClipGradByNorm(0.02), 3, True, False),
    ]
    for dtype, make, clip, accumulate, keep, again in cases:
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        twin = network(dtype)
        wanted = trained(twin, make(twin, clip), accumulate=accumulate)
        for level in LEVELS:
            net = network(dtype, again)
            if rank:
                for p in net.parameters():  # the weights of the first process count
                    p.set_value(oar.zeros_like(p))
            net, optimizer, _ = group_sharded_parallel(net, make(net, clip), level, buffer_max_size=2000)
            losses = trained(net, optimizer, rank, size, accumulate, keep=keep)
            np.testing.assert_allclose(losses, wanted, rtol=tolerance, err_msg=f"{level} {dtype}")
            same(net, twin, tolerance)


# ---- Memory --------------------------------------------------------------------------------------


def live() -> int:
    return oar.device.memory_allocated()


def bytes_of(tensors: Any) -> int:
    return sum(t.numel().item() * t.element_size() for t in tensors)


def memory() -> None:
    """What each stage leaves in a process, counted in bytes of live tensors."""
    rank, size = started()
    x = oar.to_tensor(np.random.default_rng(1).standard_normal((2, 64)).astype("float32"))
    found = {}
    for level in LEVELS:
        gc.collect()
        before = live()
        net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(16)])
        parameters = bytes_of(net.parameters())
        one_layer = bytes_of(net[0].parameters())
        optimizer = oar.optimizer.Adam(0.01, parameters=net.parameters())
        net, optimizer, _ = group_sharded_parallel(net, optimizer, level, buffer_max_size=2 * one_layer)
        for _ in range(2):
            oar.device.reset_max_memory_allocated()
            net(x).sum().backward()
            with_gradients = live() - before
            peak = oar.device.max_memory_allocated() - before
            optimizer.step()
            optimizer.clear_grad()
        at_rest = live() - before
        found[level] = at_rest, with_gradients, peak
        whole = parameters
        states = 2 * parameters / size
        ideal_rest = (whole if level != "p_g_os" else parameters / size) + states
        assert at_rest <= 1.1 * ideal_rest, (level, at_rest, ideal_rest)
        gradients = parameters if level == "os" else parameters / size
        assert with_gradients <= 1.1 * (ideal_rest + gradients), (level, with_gradients, ideal_rest + gradients)
        if level == "p_g_os":
            # At most: what stays, the gradients of three layers under way, the parameters of three layers, and activations.
            activations = 3 * 17 * bytes_of([x])
            assert peak <= 1.1 * (ideal_rest + gradients) + 8 * one_layer + activations, (peak, ideal_rest, one_layer)
        del net, optimizer
    assert found["p_g_os"][0] < found["os_g"][0] and found["os_g"][1] < found["os"][1]


# ---- Mixed precision, scalers, saving ------------------------------------------------------------


def half(net: nn.Layer, clip: Any = None) -> tuple[nn.Layer, oar.optimizer.Optimizer]:
    optimizer = oar.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=clip)
    return oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16")


def mixed_precision() -> None:
    """bfloat16 with master weights and a scaler. All processes have the same rows, so the averages are exact."""
    rank, size = started()
    words = batches(6)

    def run(net: nn.Layer, optimizer: Any, scaler: Any) -> list[float]:
        losses = []
        for number, batch in enumerate(words):
            with oar.amp.auto_cast(level="O2", dtype="bfloat16"):
                loss = loss_of(net, batch)
            if number == 2 and rank == size - 1:
                loss = loss * float("inf")  # one process alone
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            losses.append(loss.item())
        return losses

    def scaler() -> Any:
        return oar.amp.GradScaler(init_loss_scaling=8.0, use_dynamic_loss_scaling=False)

    last = rank
    rank = size - 1
    twin, optimizer = half(network("float32"))
    wanted = run(twin, optimizer, scaler())
    rank = last
    for level in LEVELS:
        net, optimizer = half(network("float32"))
        net, optimizer, own = group_sharded_parallel(net, optimizer, level, scaler(), buffer_max_size=2000)
        losses = run(net, optimizer, own)
        np.testing.assert_allclose(np.delete(losses, 2), np.delete(wanted, 2), rtol=1e-5)
        masters = [t for t in optimizer._inner_opt._master_weights.values()]
        assert masters and bytes_of(masters) <= 1.1 * bytes_of(twin.parameters()) * 2 / size + 64
        with net.whole_parameters():
            for p, other in zip(net._layers.parameters(), twin.parameters()):
                assert oar.equal_all(p.astype("float32"), other.astype("float32")).item(), level


def files(folder: str) -> None:
    """Saved as one process has them, by pieces, and loaded again."""
    rank, size = started()
    twin = network("float32")
    wanted = trained(twin, adam(twin), steps=6)
    first = network("float32")
    first_optimizer = adam(first)
    trained(first, first_optimizer, steps=3)
    for level in LEVELS:
        net = network("float32")
        net, optimizer, _ = group_sharded_parallel(net, adam(net), level)
        trained(net, optimizer, rank, size, steps=3)
        whole = os.path.join(folder, level)
        save_group_sharded_model(net, whole, optimizer)
        same(net, first, 1e-5)
        loaded, states = oar.load(os.path.join(whole, "model.pdmodel")), oar.load(os.path.join(whole, "model.pdopt"))
        assert set(states) == set(first_optimizer.state_dict())
        for name, value in first_optimizer.state_dict().items():
            if name != "LR_Scheduler":
                np.testing.assert_allclose(states[name].numpy(), value.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
        dist.save_state_dict({"model": net.sharded_state_dict(), "optimizer": optimizer.sharded_state_dict()}, os.path.join(folder, f"{level}_pieces"))

        def goes_on(again: nn.Layer, state: Any, what: str) -> None:
            state._learning_rate.set_state_dict(states["LR_Scheduler"])
            rest = trained_from(again, state, rank, size, 3, 6)
            np.testing.assert_allclose(rest, wanted[3:], rtol=1e-5, err_msg=what)

        again = network("float32")
        for p in again.parameters():
            p.set_value(oar.zeros_like(p))
        again, state, _ = group_sharded_parallel(again, adam(again), level)
        again.set_state_dict(loaded)
        state.set_state_dict(states)
        goes_on(again, state, f"files of {level}")
        again = network("float32")
        again, state, _ = group_sharded_parallel(again, adam(again), "os" if level == "p_g_os" else "p_g_os")
        pieces = {"model": again.sharded_state_dict(), "optimizer": state.sharded_state_dict()}
        dist.load_state_dict(pieces, os.path.join(folder, f"{level}_pieces"))
        state.load_sharded_state_dict(pieces["optimizer"])
        goes_on(again, state, f"pieces of {level}")


def trained_from(net: nn.Layer, optimizer: Any, rank: int, size: int, begin: int, end: int) -> np.ndarray:
    losses = []
    for words in batches()[begin:end]:
        loss = loss_of(net, words[rank * 24 // size : (rank + 1) * 24 // size])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        losses.append(loss.item())
    mean = oar.to_tensor(losses, "float64")
    if size > 1:
        dist.all_reduce(mean, dist.ReduceOp.AVG)
    return mean.numpy()


def on_disk(folder: str) -> None:
    """States in files: the same numbers, and less memory."""
    rank, size = started()
    twin = network("float32")
    wanted = trained(twin, adam(twin), steps=5)
    kept = {}
    for offload in (False, folder):
        gc.collect()
        before = live()
        net = network("float32")
        net, optimizer, _ = group_sharded_parallel(net, adam(net), "p_g_os", offload=offload)
        np.testing.assert_allclose(trained(net, optimizer, rank, size, steps=5), wanted, rtol=1e-5)
        kept[bool(offload)] = live() - before
        del net, optimizer
    assert kept[True] < 0.6 * kept[False], kept


def others() -> None:
    """Pieces with copies, frozen layers, layers that stay whole; gradients are sent while the backward pass runs."""
    rank, size = started()
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]

    def frozen(dtype: str) -> nn.Layer:
        net = network(dtype)
        for p in net.blocks[0].up.parameters():
            p.stop_gradient = True
        return net

    twin = frozen("float64")
    wanted = trained(twin, momentum(twin), steps=6)
    for level in LEVELS:
        net = frozen("float64")
        net, optimizer, _ = group_sharded_parallel(net, momentum(net), level, group=halves[rank // 2], dp_group=columns[rank % 2],
                                                   exclude_layer=["Embedding", id(net.blocks[1].norm)])
        np.testing.assert_allclose(trained(net, optimizer, rank, size, steps=6), wanted, rtol=1e-12, err_msg=level)
        same(net, twin, 1e-12)
        if level == "p_g_os":
            assert np.isfinite(net._layers.embed.weight.numpy()).all() and np.isnan(net._layers.blocks[0].up.weight.numpy()).all()
    overlap()
    small()
    inner_classes(rank, size)


def inner_classes(rank: int, size: int) -> None:
    """The classes that older scripts use."""
    twin = network("float64")
    wanted = trained(twin, momentum(twin), steps=3)
    net = network("float64")
    optimizer = GroupShardedOptimizerStage2(net.parameters(), momentum(net))
    try:
        optimizer.step()
    except RuntimeError as error:
        assert "would update their copies apart" in str(error)
    else:
        raise AssertionError("an optimiser without its network must not step")
    net = GroupShardedStage2(net, optimizer, buffer_max_size=2000)
    np.testing.assert_allclose(trained(net, optimizer, rank, size, steps=3), wanted, rtol=1e-12)
    third = network("float64")
    plain = momentum(third)
    np.testing.assert_allclose(trained(GroupShardedStage3(third, plain), plain, rank, size, steps=3), wanted, rtol=1e-12)


def overlap() -> None:
    events: list[str] = []
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
    first = net[0].weight
    net, _, _ = group_sharded_parallel(net, optimizer, "p_g_os")
    for unit in net.units:
        send = unit.send
        unit.send = lambda send=send: (events.append("sent"), send())
    first.register_hook(lambda gradient: events.append("first layer"))
    net(oar.ones([2, 8])).sum().backward()
    assert events.index("first layer") >= 5, events


def small() -> None:
    """A process without any piece."""
    _, size = started()
    rows = np.random.default_rng(2).standard_normal((4, 8, 1)).astype("float32")

    def run(net: nn.Layer, optimizer: Any, scaler: Any) -> list[float]:
        losses = []
        for x in rows:
            loss = (net(oar.to_tensor(x)) - 3.0).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            losses.append(loss.item())
        return losses

    def made() -> tuple[nn.Layer, oar.optimizer.Optimizer, Any]:
        net = nn.Linear(1, 1, nn.initializer.Constant(0.5), bias_attr=False)
        clip = nn.ClipGradByGlobalNorm(0.5)
        return net, oar.optimizer.Adam(0.1, parameters=net.parameters(), grad_clip=clip), oar.amp.GradScaler(init_loss_scaling=8.0)

    wanted = run(*made())
    for level in LEVELS:
        net, optimizer, scaler = made()
        net, optimizer, scaler = group_sharded_parallel(net, optimizer, level, scaler)
        np.testing.assert_allclose(run(net, optimizer, scaler), wanted, rtol=1e-5, err_msg=level)
        states = optimizer.whole_state_dict()
        assert (states is None) == (dist.get_rank() > 0)
        optimizer.load_sharded_state_dict(optimizer.sharded_state_dict())
        with net.whole_parameters():
            assert np.isfinite(net.state_dict()["weight"].numpy()).all()
    try:
        net(oar.ones([2, 3]))
    except (ValueError, RuntimeError):
        assert not net._gathering._running and np.isnan(net._layers.weight.numpy()).all()
    else:
        raise AssertionError("a wrong shape must be an error")
