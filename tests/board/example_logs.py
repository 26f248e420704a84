"""Logs as training programs write them, for the tests in the browser and for the picture in docs/board.md.

    python tests/board/example_logs.py FOLDER
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

import oar
from oar.board import LogWriter

STEPS = 400
START = 1_760_000_000.0  # seconds since 1970
TRIALS = [("sgd", 0.1, 32), ("sgd", 0.01, 64), ("adam", 0.001, 32), ("adam", 0.003, 128), ("adamw", 0.0003, 64)]


def wall(step: int) -> float:
    return 1000 * (START + 2.5 * step)


def scalars(writer: LogWriter, rate: float, chance: np.random.Generator) -> float:
    speed = 0.02 * (1 + math.log10(rate) / 4) + 0.008
    accuracy = 0.0
    for step in range(0, STEPS, 2):
        loss = 2.3 * math.exp(-speed * step) + 0.08 + 0.12 * chance.normal() * math.exp(-speed * step / 2)
        writer.add_scalar("train/loss", max(loss, 0.01), step, wall(step))
        writer.add_scalar("train/learning_rate", rate * 0.5 * (1 + math.cos(math.pi * step / STEPS)), step, wall(step))
        writer.add_scalar("train/gradient_norm", float("nan") if step == 120 and rate >= 0.1 else abs(1 + chance.normal()) * loss + 0.1,
                          step, wall(step))
        if step % 20 == 0:
            accuracy = 0.97 - 0.85 * math.exp(-speed * step) + 0.008 * chance.normal() - 0.1 * abs(math.log10(rate) + 2.5) / 3
            writer.add_scalar("test/accuracy", min(accuracy, 0.999), step, wall(step))
            writer.add_scalar("test/loss", max(loss + 0.1, 0.05), step, wall(step))
            writer.add_scalar("images_per_second", 900 + 40 * chance.normal(), step, wall(step))
    return accuracy


def weights(writer: LogWriter, chance: np.random.Generator) -> None:
    for step in range(0, STEPS, 20):
        spread = 0.05 + 0.25 * step / STEPS
        writer.add_histogram("fc1.weight", chance.normal(0, spread, 3000), step, wall(step), buckets=40)
        writer.add_histogram("fc2.bias", np.concatenate([chance.normal(-spread, 0.05, 500), chance.normal(spread, 0.07, 800)]), step,
                             wall(step), buckets=40)


def pictures(writer: LogWriter, chance: np.random.Generator) -> None:
    y, x = np.mgrid[0:96, 0:128] / 96
    for step in range(0, STEPS, 100):
        noise = chance.random((96, 128, 3)) * math.exp(-step / 120)
        scene = np.stack([np.sin(5 * x + step / 100), np.cos(4 * y), np.sin(3 * (x + y))], -1) * 0.4 + 0.5
        writer.add_image("generated/scene", (scene + noise).clip(0, 1), step, wall(step))
        digits = oar.to_tensor(chance.random((12, 8, 8)) ** 2)
        writer.add_image_matrix("generated/digits", digits, step, dataformats="HW", walltime=wall(step))
        tone = np.sin(np.arange(16000) * (0.1 + step / 4000)) * np.exp(-np.arange(16000) / 6000)
        writer.add_audio("generated/tone", tone, step, 16000, wall(step))
        writer.add_text("samples", f"step {step}: Once upon a time there was a boat.\nIt had <b>two</b> oars & a sail.", step, wall(step))
        labels = chance.integers(0, 2, 800)
        scores = 1 / (1 + np.exp(-(labels - 0.5) * step / 150 - chance.normal(size=800)))
        writer.add_pr_curve("boats", labels, scores, step, 64, walltime=wall(step))
        writer.add_roc_curve("boats/roc", labels, scores, step, 64, walltime=wall(step))


class Net(oar.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.features = oar.nn.Sequential(oar.nn.Conv2D(1, 8, 3, padding=1), oar.nn.BatchNorm2D(8), oar.nn.ReLU(), oar.nn.MaxPool2D(2))
        self.left, self.right = oar.nn.Linear(8 * 16, 32), oar.nn.Linear(8 * 16, 32)
        self.head = oar.nn.Linear(32, 10)

    def forward(self, images):
        x = self.features(images).flatten(1)
        x = oar.nn.functional.gelu(self.left(x)) * oar.nn.functional.sigmoid(self.right(x))
        return oar.nn.functional.softmax(self.head(x))


def embeddings(writer: LogWriter, chance: np.random.Generator) -> None:
    kinds = ["boat", "fish", "bird", "tree", "star"]
    centres = chance.normal(size=(5, 24)) * 2
    which = chance.integers(0, 5, 600)
    vectors = centres[which] + chance.normal(size=(600, 24))
    names = [[f"{kinds[k]} {i}" for i, k in enumerate(which)], [kinds[k] for k in which], [f"{v[0]:.3f}" for v in vectors]]
    writer.add_embeddings("words", vectors, names, ["name", "kind", "first"])


def write(folder: Path) -> None:
    """Five runs of one experiment."""
    for number, (kind, rate, batch) in enumerate(TRIALS):
        chance = np.random.default_rng(number)
        with LogWriter(folder / f"{kind}-{rate}", max_queue=1000) as writer:
            writer.add_hparams({"optimizer": kind, "learning_rate": rate, "batch_size": batch, "augment": number % 2 == 0},
                               ["test/accuracy", "test/loss"], walltime=wall(number))
            scalars(writer, rate, chance)
            if number < 2:
                weights(writer, chance)
                pictures(writer, chance)
            if number == 0:
                net = Net()
                net.eval()
                writer.add_graph(net, [oar.static.InputSpec([-1, 1, 8, 8], "float32")])
                embeddings(writer, chance)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
