"""What the processes of test_distributed.py train, and the same by one process."""

from __future__ import annotations

import numpy as np

import oar
from group_work import started
from oar import distributed as dist
from oar import nn


def network() -> nn.Layer:
    oar.seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1D(16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def plain_network() -> nn.Layer:
    oar.seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def batches(steps: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((steps, 24, 6)).astype("float32"), rng.integers(0, 3, (steps, 24))


def trained(net: nn.Layer, rank: int, size: int, steps: int, accumulate: bool = False) -> list[float]:
    """Trains on a part of each batch; returns the losses of the whole batches."""
    optimizer = oar.optimizer.AdamW(0.01, parameters=net.parameters())
    images, labels = batches(steps)
    losses = []
    for x, y in zip(images, labels):
        rows = slice(rank * 24 // size, (rank + 1) * 24 // size)
        halves = [slice(rows.start, (rows.start + rows.stop) // 2), slice((rows.start + rows.stop) // 2, rows.stop)]
        total = 0.0
        for number, part in enumerate(halves if accumulate else [rows]):
            def backward(part: slice = part) -> float:
                loss = nn.functional.cross_entropy(net(oar.to_tensor(x[part])), oar.to_tensor(y[part]))
                loss = loss / 2 if accumulate else loss
                loss.backward()
                return loss.item()

            if accumulate and number == 0 and isinstance(net, dist.parallel.DataParallel):
                with net.no_sync():
                    total += backward()
            else:
                total += backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(total)
    mean = oar.to_tensor(losses, "float64")
    if size > 1:
        dist.all_reduce(mean, dist.ReduceOp.AVG)
    return mean.tolist()


def data_parallel(steps: int = 20) -> None:
    rank, size = started()
    for accumulate in (False, True):
        alone = trained(plain_network(), 0, 1, steps, accumulate)
        net = plain_network()
        if rank:
            for p in net.parameters():  # the first process's weights count
                p.set_value(oar.zeros_like(p))
        # Small buckets, so that there are several.
        losses = trained(oar.DataParallel(net, comm_buffer_size=0.001, last_comm_buffer_size=0.0001), rank, size, steps, accumulate)
        np.testing.assert_allclose(losses, alone, rtol=1e-5)
        digest = oar.concat([p.flatten() for p in net.parameters()])
        everyone: list[oar.Tensor] = []
        dist.all_gather(everyone, digest)
        assert all(np.array_equal(e.numpy(), digest.numpy()) for e in everyone), "the weights have drifted apart"
    normed = oar.DataParallel(network())
    trained(normed, rank, size, 2)
    unused_parameters(rank, size)
    overlap(size)


class Branches(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.shared, self.left, self.right, self.idle = (nn.Linear(2, 2) for _ in range(4))

    def forward(self, x: oar.Tensor, left: bool) -> oar.Tensor:
        return (self.left if left else self.right)(self.shared(x)).sum()


def unused_parameters(rank: int, size: int) -> None:
    oar.seed(1)
    net = oar.DataParallel(Branches(), find_unused_parameters=True)
    net(oar.ones([1, 2]), rank == 0).backward()
    inner = net._layers
    assert inner.idle.weight.grad is None
    hidden = (oar.ones([1, 2]) @ inner.shared.weight + inner.shared.bias).numpy().T @ np.ones((1, 2))
    np.testing.assert_allclose(inner.left.weight.grad.numpy(), hidden / size, rtol=1e-6)
    np.testing.assert_allclose(inner.right.weight.grad.numpy(), hidden * (size - 1) / size, rtol=1e-6)
    strict = oar.DataParallel(Branches())
    try:
        strict(oar.ones([1, 2]), True).backward()
    except RuntimeError as error:
        assert "find_unused_parameters=True" in str(error), error
    else:
        raise AssertionError("unused parameters must be an error")
    dist.barrier()


def overlap(size: int) -> None:
    """The first bucket is sent before the backward pass has computed the gradients of the first layers."""
    events: list[str] = []
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    model = oar.DataParallel(net, comm_buffer_size=0.0001, last_comm_buffer_size=0.0001)
    reducer = model._reducer
    send = reducer._send_complete

    def recorded() -> None:
        before = reducer._sent
        send()
        events.extend(["sent"] * (reducer._sent - before))

    reducer._send_complete = recorded
    net[0].weight.register_hook(lambda g: events.append("first layer"))
    model(oar.ones([2, 8])).sum().backward()
    assert events.index("first layer") >= 5, events


def captured_step() -> None:
    rank, size = started()
    net = plain_network()
    model = oar.DataParallel(net)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())

    def step(x: oar.Tensor, y: oar.Tensor) -> oar.Tensor:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    images, labels = batches(4)
    twin = plain_network()
    other = oar.optimizer.SGD(0.1, parameters=twin.parameters())
    program = oar.jit.to_static(step)
    for x, y in zip(images, labels):
        rows = slice(rank * 24 // size, (rank + 1) * 24 // size)
        program(oar.to_tensor(x[rows]), oar.to_tensor(y[rows]))
        loss = nn.functional.cross_entropy(twin(oar.to_tensor(x)), oar.to_tensor(y))
        loss.backward()
        other.step()
        other.clear_grad()
    for p, wanted in zip(net.parameters(), twin.parameters()):
        np.testing.assert_allclose(p.numpy(), wanted.numpy(), rtol=2e-5, atol=1e-6)
