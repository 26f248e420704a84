"""Images per second from JPEG files to batches of tensors: Oar's DataLoader and PyTorch's with torchvision, one run, in turns.

    python benchmarks/images.py [--torch build/bench/torch/bin/python] [--rounds 6] [--workers 0 2] [--filter train]

The peer needs torchvision and Pillow. Each library has a process of its own, and one works at a time. Both sides are written the way
their users write them: a folder of images, a ``Compose``, a loader. A row is the best of the rounds; its ratio is Oar's images per
second by the peer's, so above 1 Oar is faster. Without worker processes, processor time is counted, so that other programs disturb
little. Where nothing is random, one batch is compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = 16
SIZES = {"photo 500x375": (375, 500, 64), "photo 1600x1200": (1200, 1600, 16)}


def write_photos(root: Path) -> None:
    """Images with as much detail as a photograph has at this quality: about two bits per pixel."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, (height, width, count) in SIZES.items():
        for i in range(count):
            folder = root / name / f"class{i % 2}"
            folder.mkdir(parents=True, exist_ok=True)
            coarse = Image.fromarray(rng.integers(0, 256, (height // 16, width // 16, 3), np.uint8)).resize((width, height), Image.Resampling.BICUBIC)
            grain = rng.normal(0, 6, (height, width, 1))
            Image.fromarray(np.clip(np.asarray(coarse) + grain, 0, 255).astype(np.uint8)).save(folder / f"{i}.jpg", quality=90)


def oar_loaders(root: str, workers: list[int]) -> Any:
    from oar.io import DataLoader
    from oar.vision import transforms as T
    from oar.vision.datasets import DatasetFolder

    end = [T.ToTensor(), T.Normalize(MEAN, STD)]
    chains = {"train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *end]),
              "test": T.Compose([T.Resize(256), T.CenterCrop(224), *end])}
    for size in SIZES:
        for chain, transform in chains.items():
            for count in workers:
                data = DatasetFolder(os.path.join(root, size), transform=transform)
                yield f"{chain}, {size}, {count} workers", DataLoader(data, batch_size=BATCH, num_workers=count, persistent_workers=count > 0)


def torch_loaders(root: str, workers: list[int]) -> Any:
    import torch
    from torch.utils.data import DataLoader
    from torchvision import transforms as T
    from torchvision.datasets import ImageFolder

    torch.set_num_threads(1)
    end = [T.ToTensor(), T.Normalize(MEAN, STD)]
    chains = {"train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *end]),
              "test": T.Compose([T.Resize(256), T.CenterCrop(224), *end])}
    for size in SIZES:
        for chain, transform in chains.items():
            for count in workers:
                data = ImageFolder(os.path.join(root, size), transform)
                yield f"{chain}, {size}, {count} workers", DataLoader(data, batch_size=BATCH, num_workers=count, persistent_workers=count > 0)


def serve(side: str, root: str, workers: list[int]) -> None:
    """Answers each line, the name of a row, with the seconds per image and the mean of the first batch."""
    loaders = dict((oar_loaders if side == "oar" else torch_loaders)(root, workers))
    print(json.dumps(list(loaders)), flush=True)
    for line in sys.stdin:
        loader = loaders[line.strip()]
        clock = time.process_time if "0 workers" in line else time.perf_counter
        start, count, first = clock(), 0, None
        for images, _ in loader:
            count += images.shape[0]
            if first is None:
                first = float(np.abs(images.numpy()).mean())
        print(json.dumps([(clock() - start) / count, first]), flush=True)


class Side:
    def __init__(self, python: str, side: str, root: str, workers: list[int]) -> None:
        command = [python, __file__, "--serve", side, "--root", root, "--workers", *map(str, workers)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.rows = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("images.py: a process ended; see its message above")
        return line

    def run(self, row: str) -> tuple[float, float]:
        assert self.process.stdin is not None
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        seconds, first = json.loads(self._answer())
        return seconds, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", default="build/bench/torch/bin/python")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--filter", default="")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--root", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.root, options.workers)
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder))
        sides = [Side(python, side, folder, options.workers)
                 for side, python in (("oar", sys.executable), ("torch", options.torch))]
        print(f"{'':40} {'oar':>10} {'torch':>10}  ratio   (images per second)")
        for row in (row for row in sides[0].rows if options.filter in row):
            best = [float("inf")] * len(sides)
            for _ in range(options.rounds):
                results = [side.run(row) for side in sides]
                best = [min(old, new) for old, (new, _) in zip(best, results)]
            means = [first for _, first in results]
            if row.startswith("test") and abs(means[0] - means[1]) > 1e-3:
                print(f"{row:40} WRONG: the means of the first batch are {means}")
                continue
            print(f"{row:40} {1 / best[0]:10.1f} {1 / best[1]:10.1f}  {best[1] / best[0]:5.2f}", flush=True)
        for side in sides:
            side.process.stdin.close()  # type: ignore[union-attr]
            side.process.wait(20)


if __name__ == "__main__":
    main()
