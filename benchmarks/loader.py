"""``DataLoader`` against PyTorch's and Paddle's: samples a second, in processes that take turns.

    python benchmarks/loader.py --torch build/bench/torch/bin/python [--paddle PYTHON] [--filter large] [--rounds 7]

The same datasets, batch sizes and numbers of workers on each side. A pass starts its workers, as each epoch of a training
program does. Every batch is read, one value of each page. The ratio is the peer's time divided by Oar's, of the minima.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Any

import numpy as np

# name: dataset, samples, batch size
CASES: dict[str, tuple[str, int, int]] = {
    "small images": ("small", 20_000, 64),
    "large images": ("large", 768, 32),
    "images to transpose": ("transposed", 768, 32),
    "tokens": ("tokens", 20_000, 64),
    "arrays": ("arrays", 100_000, 256),
}
WORKERS = (0, 2)


def make_samples(kind: str, base: type, length: int) -> Any:
    """A dataset whose samples cost next to nothing, so that the loader is what is measured."""
    rng = np.random.default_rng(0)
    images = {
        "small": rng.integers(0, 256, (256, 1, 28, 28), dtype=np.uint8),
        "large": rng.random((16, 3, 224, 224), dtype=np.float32),
        "transposed": rng.integers(0, 256, (16, 224, 224, 3), dtype=np.uint8),
    }
    tokens = rng.integers(0, 30_000, (256, 128))

    class Samples(base):
        def __len__(self) -> int:
            return length

        def __getitem__(self, idx: int) -> Any:
            if kind == "tokens":
                row = tokens[idx % 256]
                return {"ids": row, "mask": row > 10, "label": idx % 3}
            image = images[kind][idx % len(images[kind])]
            return (image.transpose(2, 0, 1) if kind == "transposed" else image), idx % 10

    return Samples()


def loader_of(framework: str, case: str, workers: int) -> Any:
    kind, length, batch_size = CASES[case]
    if framework == "torch":
        import torch
        from torch.utils import data as io

        torch.set_num_threads(1)
        convert = torch.from_numpy
    else:
        lib = __import__("oar" if framework == "oar" else "paddle")
        io, convert = lib.io, lib.to_tensor
    if kind == "arrays":
        fields = [convert(np.zeros((length, 784), np.float32)), convert(np.arange(length))]
        dataset = io.TensorDataset(*fields) if framework == "torch" else io.TensorDataset(fields)
    else:
        dataset = make_samples(kind, io.Dataset, length)
    return io.DataLoader(dataset, batch_size=batch_size, shuffle=False, num_workers=workers)


def read(batch: Any) -> None:
    """Touches every page of a batch."""
    for field in batch.values() if isinstance(batch, dict) else batch:
        np.asarray(field).reshape(-1)[::1024].max()


def serve(framework: str) -> None:
    """The measured side: a line with a case and a number of workers is answered by the seconds of one pass."""
    for line in sys.stdin:
        case, _, workers = line.strip().rpartition(" ")
        loader = loader_of(framework, case, int(workers))
        start = time.perf_counter()
        for batch in loader:
            read(batch)
        print("seconds", time.perf_counter() - start, flush=True)


class Side:
    """A framework in its own process."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        self._process = subprocess.Popen([python, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, case: str, workers: int) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{case} {workers}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("seconds "):
                return float(line.split()[1])
        raise RuntimeError(f"{self.name} ended while it measured {case!r} with {workers} workers")


def compare(sides: list[Side], case: str, workers: int, rounds: int) -> None:
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides if number % 2 else sides[::-1]:
            seconds = side.measure(case, workers)
            if number > 0:  # the first round warms up
                times[side.name].append(seconds)
    best = {name: min(values) for name, values in times.items()}
    rates = "  ".join(f"{name} {CASES[case][1] / seconds:10,.0f}/s" for name, seconds in best.items())
    ratios = "  ".join(f"{name} {seconds / best['oar']:5.2f}x" for name, seconds in best.items() if name != "oar")
    print(f"{case:20} {workers} workers  {rates}   {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--paddle", metavar="PYTHON", help="an interpreter that has PaddlePaddle")
    parser.add_argument("--filter", default="", help="only cases with this in their name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    sides = [Side("oar", sys.executable)]
    sides += [Side(name, python) for name in ("torch", "paddle") if (python := getattr(options, name))]
    for case in CASES:
        if options.filter in case:
            for workers in WORKERS:
                compare(sides, case, workers, options.rounds)


if __name__ == "__main__":
    main()
