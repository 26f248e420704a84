"""What the processes of test_parameter_server.py run: a small DeepFM on generated data, with its rows on servers.

    python -m oar.distributed.launch --server_num 2 --worker_num 2 server_training.py sync OUT
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import oar
from oar import nn
from oar.distributed import CountFilterEntry, fleet, ps

FIELDS, WORDS, BATCH = 4, 40, 32  # BATCH samples in all workers together
RATE = 0.1


def samples(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys of each field, and whether a hidden weight of each key sums to more than 0."""
    rng = np.random.default_rng(5)
    weights = rng.standard_normal(FIELDS * WORDS)
    ids = rng.integers(0, WORDS, (steps * BATCH, FIELDS)) + WORDS * np.arange(FIELDS)
    return ids, (weights[ids].sum(1) > 0).astype("float32")[:, None]


class DeepFM(nn.Layer):
    """Weights of keys, products of their vectors, and a network on the vectors."""

    def __init__(self, embedding: Callable[[int, str], nn.Layer]) -> None:
        super().__init__()
        self.first, self.second = embedding(1, "first"), embedding(4, "second")
        self.deep = nn.Sequential(nn.Linear(FIELDS * 4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, ids: oar.Tensor) -> oar.Tensor:
        weights, vectors = self.first(ids), self.second(ids)
        total = vectors.sum(1)
        products = 0.5 * (total * total - (vectors * vectors).sum(1)).sum(1, keepdim=True)
        return weights.sum(1) + products + self.deep(vectors.flatten(1))


def loss_of(net: nn.Layer, ids: np.ndarray, labels: np.ndarray) -> oar.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(net(oar.to_tensor(ids)), oar.to_tensor(labels))


def adagrad(net: nn.Layer) -> oar.optimizer.Adagrad:
    """With an accumulator above 0, which keeps it from making steps of full length out of rounded zeros."""
    return oar.optimizer.Adagrad(RATE, parameters=net.parameters(), initial_accumulator_value=0.01)


def rows(name: str, width: int) -> np.ndarray:
    content = np.empty((FIELDS * WORDS, width), "float32")
    fleet.fleet._servers.client.pull_sparse(name, np.arange(FIELDS * WORDS), content)
    return content


def network() -> nn.Layer:
    oar.seed(3)
    return DeepFM(lambda width, name: ps.SparseEmbedding(width, name, weight_attr=ps.Initial("gaussian", scale=0.1, seed=width)))


def train(mode: str, out: Path) -> None:
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = mode != "sync"
    strategy.a_sync_configs = {"k_steps": 4 if mode == "geo" else 0}
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False), strategy=strategy)
    if fleet.is_server():
        with open(out / f"server{fleet.server_index()}", "a") as starts:
            starts.write(f"{os.getpid()}\n")
        fleet.init_server()
        fleet.run_server()
        return
    rank, count = fleet.worker_index(), fleet.worker_num()
    net = network()
    rule = oar.optimizer.SGD(1.0, net.parameters()) if mode == "geo" else adagrad(net)
    optimizer = fleet.distributed_optimizer(rule)
    fleet.init_worker()
    steps = 10 if mode == "sync" else 60
    ids, labels = samples(steps)
    for layer in (net.first, net.second):
        layer._connect()
    before = {"first": rows("first", 1), "second": rows("second", 4)}
    losses = []
    for step in range(steps):
        part = slice(step * BATCH + rank, (step + 1) * BATCH, count)
        loss = loss_of(net, ids[part], labels[part])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
        if mode == "sync" and rank == 0 and step == 4:  # the launcher starts it again
            os.kill(int((out / "server0").read_text()), signal.SIGKILL)
    fleet.barrier_worker()
    if rank == 0:
        dense = {f"dense{i}": p.numpy() for i, p in enumerate(net.parameters())}
        np.savez(out / "rows.npz", first=before["first"], second=before["second"], first_after=rows("first", 1),
                 second_after=rows("second", 4), **dense)
    (out / f"losses{rank}.json").write_text(json.dumps(losses))
    fleet.barrier_worker()
    if mode == "sync":
        keep_and_lose(net, out)
    fleet.stop_worker()


def keep_and_lose(net: DeepFM, out: Path) -> None:
    """Save, load, shrink, entries."""
    client = fleet.fleet._servers.client
    saved = rows("second", 4)
    fleet.save_persistables(None, str(out / "saved"))
    if fleet.is_first_worker():
        client.push_sparse("second", np.arange(5), np.ones((5, 4), "float32"), None, None, 0.5, False)
        assert not np.array_equal(rows("second", 4), saved)
    fleet.barrier_worker()
    fleet.load_model(str(out / "saved"))
    assert np.array_equal(rows("second", 4), saved)
    rare = ps.SparseEmbedding(2, "rare", rule=ps.Rule("sgd"), entry=CountFilterEntry(3), score=ps.Score(most_unseen=0), on_disk=True)
    rare._connect()
    fleet.barrier_worker()
    if fleet.is_first_worker():
        keys = np.arange(6)
        for _ in range(2):
            client.push_sparse("rare", keys, np.ones((6, 2), "float32"), None, None, 0.5, False)
        client.push_sparse("rare", keys[:2], np.ones((2, 2), "float32"), None, None, 0.5, False)
        assert client.size("rare")[0] == 2 and client.size("rare")[2] == 4, client.size("rare")
        assert (rare(oar.to_tensor(keys)).numpy()[2:] == 0).all()
    fleet.shrink()
    if fleet.is_first_worker():
        assert client.size("rare")[0] == 0, client.size("rare")
    fleet.barrier_worker()


def static(out: Path) -> None:
    """A static program over a dataset; its loss is compared with that of one process."""
    oar.enable_static()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = False
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False), strategy=strategy)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    rank, count, steps = fleet.worker_index(), fleet.worker_num(), 5
    main, startup = oar.static.Program(), oar.static.Program()
    with oar.static.program_guard(main, startup):
        ids, label = oar.static.data("ids", [None, FIELDS], "int64"), oar.static.data("label", [None, 1])
        constant = nn.initializer.Constant(0.01)
        vectors = oar.static.nn.sparse_embedding(ids, [10**9, 4], param_attr=oar.ParamAttr("vectors", constant))
        output = oar.static.nn.fc(vectors.reshape([-1, FIELDS * 4]), 1, weight_attr=nn.initializer.Constant(0.1))
        loss = nn.functional.binary_cross_entropy_with_logits(output, label)
        loss.name = "loss"
        fleet.distributed_optimizer(oar.optimizer.Adagrad(RATE)).minimize(loss)
    executor = oar.static.Executor()
    executor.run(startup)
    fleet.init_worker()
    keys, labels = samples(steps)
    file = out / f"part{rank}"
    lines = [f"{FIELDS} {' '.join(map(str, row))} 1 {value[0]}" for row, value in zip(keys, labels)]
    order = [i for step in range(steps) for i in range(step * BATCH + rank, (step + 1) * BATCH, count)]
    file.write_text("\n".join(lines[i] for i in order) + "\n")
    dataset = oar.distributed.InMemoryDataset()
    dataset.init(batch_size=BATCH // count, use_var=[ids, label], pipe_command="cat")
    dataset.set_filelist([str(file)])
    dataset.load_into_memory()
    executor.train_from_dataset(main, dataset)
    test = main.clone(for_test=True)
    (value,) = executor.run(test, {"ids": keys, "label": labels}, ["loss"])
    (out / f"losses{rank}.json").write_text(json.dumps([float(value)]))
    fleet.stop_worker()


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    static(folder) if sys.argv[1] == "static" else train(sys.argv[1], folder)
