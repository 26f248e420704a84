"""A training run that saves every step, is killed from outside, and goes on: ``python checkpoint_run.py FOLDER STEPS [async]``.

It prints ``saved N`` when the checkpoint of step N is on the disk, and at last a digest of all that it computed.
"""

from __future__ import annotations

import hashlib
import random
import sys

import numpy as np

import oar
from oar import nn
from oar.checkpoint import CheckpointManager

EPOCH = 13  # batches


class Noisy(oar.io.Dataset):
    """Samples with noise that is drawn when they are read."""

    def __len__(self):
        return 4 * EPOCH

    def __getitem__(self, index):
        return np.full([16], index / 50, "float32") + np.random.randn(16).astype("float32"), np.array([index % 3], "int64")


def main(folder: str, steps: int, async_save: bool) -> None:
    for seed in (oar.seed, np.random.seed, random.seed):
        seed(5)
    net = nn.Sequential(nn.Linear(16, 256), nn.BatchNorm1D(256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 128), nn.Linear(128, 3))
    rate = oar.optimizer.lr.CosineAnnealingDecay(0.01, steps)
    optimizer = oar.optimizer.AdamW(rate, parameters=net.parameters())
    loader = oar.io.DataLoader(Noisy(), batch_size=4, shuffle=True)
    losses: list[float] = []
    manager = CheckpointManager(folder, max_to_keep=2, async_save=async_save, model=net, optimizer=optimizer, loader=loader)
    found = manager.restore()
    step = 0
    if found is not None:
        step, losses = found.step, list(found.extra["losses"])
        print("restored", step, flush=True)
    while step < steps:
        for images, labels in loader:
            loss = nn.functional.cross_entropy(net(images), labels) * (1.0 + 0.01 * random.random())
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            rate.step()
            step += 1
            losses.append(float(loss))
            manager.save(step, extra={"losses": losses})
            if not async_save:
                print("saved", step, flush=True)
            if step == steps:
                break
    manager.close()
    digest = hashlib.sha256(repr(losses).encode())
    for value in [*net.state_dict().values(), *(v for v in optimizer.state_dict().values() if isinstance(v, oar.Tensor))]:
        digest.update(value.numpy().tobytes())
    print("digest", digest.hexdigest(), rate.get_lr(), random.random(), np.random.rand(), float(oar.rand([1])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "async" in sys.argv[3:])
