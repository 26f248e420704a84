"""Trains a network on handwritten digits in several processes:

    python -m oar.distributed.launch --nproc_per_node 2 examples/distributed/ddp.py

Each process computes the gradients of its part of each batch. Their averages are those of the whole batch, so any number of processes
that divides the batch learns the same weights. Without the launcher the script trains in one process.
"""

from __future__ import annotations

import argparse

import oar
from oar import nn
from oar.datasets import Digits
from oar.io import DataLoader, DistributedBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="images in all processes together")
    options = parser.parse_args()

    oar.distributed.init_parallel_env()
    rank, count = oar.distributed.get_rank(), oar.distributed.get_world_size()

    oar.seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model = oar.DataParallel(net)
    optimizer = oar.optimizer.Adam(1e-3, parameters=model.parameters())

    dataset, held_out = Digits("train"), Digits("test")
    sampler = DistributedBatchSampler(dataset, options.batch // count, shuffle=True, drop_last=True)
    loader = DataLoader(dataset, batch_sampler=sampler)

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        oar.distributed.all_reduce(loss, oar.distributed.ReduceOp.AVG)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)

    # Each process tests a part of the images.
    images, labels = oar.to_tensor(held_out.images[rank::count]), oar.to_tensor(held_out.labels[rank::count])
    with oar.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    oar.distributed.all_reduce(right)
    if rank == 0:
        print(f"{count} processes, accuracy {right.item() / len(held_out):.4f}", flush=True)


if __name__ == "__main__":
    main()
