"""Predicts clicks with a DeepFM whose embeddings live on servers of parameters:

    python -m oar.distributed.launch --server_num 2 --worker_num 2 examples/distributed/recommendation.py

The keys of the samples are hashes of made-up users, articles and hours. Each worker trains on its part of each batch; its gradients go
to the servers, and only the rows of the batch come back. `--mode async` does not wait for the other workers, `--mode geo` exchanges
changes every eight steps, and `--disk` keeps the rows in databases on the disks of the servers.
"""

from __future__ import annotations

import argparse

import numpy as np

import oar
from oar import nn
from oar.distributed import fleet, ps

FIELDS = 3


def clicks(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Users like some of ten topics; an article has one, and some hours are better than others."""
    rng = np.random.default_rng(seed)
    user, article, hour = rng.integers(0, 400, count), rng.integers(0, 200, count), rng.integers(0, 24, count)
    taste = np.random.default_rng(0).standard_normal((400, 10))[user, article % 10]
    chance = 1 / (1 + np.exp(-2 * taste - np.sin(hour / 4)))
    keys = np.stack([user, article, hour], 1).astype("uint64") + (np.arange(FIELDS, dtype="uint64") << np.uint64(32))
    keys *= np.uint64(0x9E3779B97F4A7C15)  # spread over all 64-bit integers
    return keys.view("int64"), (rng.random(count) < chance).astype("float32")[:, None]


class DeepFM(nn.Layer):
    """Weights of keys, products of their vectors, and a network on the vectors."""

    def __init__(self, width: int, on_disk: bool) -> None:
        super().__init__()
        self.weights = ps.SparseEmbedding(1, "weights", on_disk=on_disk)
        self.vectors = ps.SparseEmbedding(width, "vectors", on_disk=on_disk, weight_attr=nn.initializer.Normal(0.0, 0.05))
        self.deep = nn.Sequential(nn.Linear(FIELDS * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, keys: oar.Tensor) -> oar.Tensor:
        weights, vectors = self.weights(keys), self.vectors(keys)
        total = vectors.sum(1)
        products = 0.5 * (total * total - (vectors * vectors).sum(1)).sum(1, keepdim=True)
        return weights.sum(1) + products + self.deep(vectors.flatten(1))


def area_under_curve(scores: np.ndarray, labels: np.ndarray) -> float:
    """The chance that a click has a higher score than a sample without one."""
    ranks = scores.reshape(-1).argsort().argsort() + 1
    hits = labels.reshape(-1) == 1
    return float((ranks[hits].sum() - hits.sum() * (hits.sum() + 1) / 2) / (hits.sum() * (~hits).sum()))


def train(options: argparse.Namespace) -> None:
    rank, count = fleet.worker_index(), fleet.worker_num()
    oar.seed(0)
    net = DeepFM(8, options.disk)
    rule = oar.optimizer.SGD(0.2, parameters=net.parameters()) if options.mode == "geo" else oar.optimizer.Adagrad(
        0.1, parameters=net.parameters())
    optimizer = fleet.distributed_optimizer(rule)
    fleet.init_worker()
    keys, labels = clicks(options.steps * options.batch, seed=1)
    for step in range(options.steps):
        part = slice(step * options.batch + rank, (step + 1) * options.batch, count)
        loss = nn.functional.binary_cross_entropy_with_logits(net(oar.to_tensor(keys[part])), oar.to_tensor(labels[part]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if rank == 0 and (step + 1) % 50 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
    fleet.barrier_worker()
    if rank == 0:
        net.eval()
        held_out, wanted = clicks(5000, seed=2)
        with oar.no_grad():
            scores = net(oar.to_tensor(held_out)).numpy()
        print(f"{count} workers, {fleet.server_num()} servers, area under the curve {area_under_curve(scores, wanted):.4f}", flush=True)
    if options.save:
        fleet.save_persistables(None, options.save)
    fleet.stop_worker()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("sync", "async", "geo"), default="sync")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=256, help="samples in all workers together")
    parser.add_argument("--disk", action="store_true", help="keep the rows on the disks of the servers")
    parser.add_argument("--save", metavar="FOLDER", help="save the tables there at the end")
    options = parser.parse_args()

    strategy = fleet.DistributedStrategy()
    strategy.a_sync = options.mode != "sync"
    strategy.a_sync_configs = {"k_steps": 8 if options.mode == "geo" else 0}
    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False), strategy=strategy)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        train(options)


if __name__ == "__main__":
    main()
