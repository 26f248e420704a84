"""How each recipe trains. benchmarks/recipes_torch.py does the same with PyTorch."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import Images, batches, load, scaled


@dataclass(frozen=True)
class Recipe:
    """Numbers of a recipe. ``promise`` is the share of test images that it gets right."""

    name: str
    promise: float
    epochs: int
    batch: int
    rate: float
    decay: float
    shift: int
    flip: bool

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate: up for a fifth of the steps, then down to nothing."""
        top = max(1, steps // 5)
        return self.rate * (min(1.0, (step + 1) / top) if step < top else (steps - step) / (steps - top))


RECIPES = {recipe.name: recipe for recipe in (
    Recipe("mnist", promise=0.992, epochs=5, batch=128, rate=0.05, decay=1e-4, shift=2, flip=False),
    Recipe("fashion_mnist", promise=0.92, epochs=12, batch=128, rate=0.1, decay=5e-4, shift=1, flip=True),
    Recipe("cifar10", promise=0.90, epochs=12, batch=128, rate=0.2, decay=5e-4, shift=4, flip=True),
)}
# A training step (images, classes, learning rate -> loss), and the classes that are found in images.
Step = Callable[[np.ndarray, np.ndarray, float], float]
Classify = Callable[[np.ndarray], np.ndarray]


def arguments(recipe: Recipe, description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=recipe.epochs, help=f"passes over the data (default {recipe.epochs})")
    parser.add_argument("--data", type=Path, default=Path("build/data"), help="folder of the data (default build/data)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and batches (default 0)")
    parser.add_argument("--images", type=int, default=0, help="train on this many images alone, and promise nothing")
    parser.add_argument("--paced", action="store_true", help="before each epoch, wait for a line on standard input")
    return parser.parse_args()


def run(recipe: Recipe, args: argparse.Namespace, step: Step, classify: Classify) -> None:
    """Train and test. Ends with an error if the result is not as good as promised."""
    data = load(recipe.name, args.data)
    if args.images:
        data = Images(data.train_images[:args.images], data.train_labels[:args.images],
                      data.test_images[:args.images], data.test_labels[:args.images])
    rng = np.random.default_rng(args.seed)
    per_epoch = len(data.train_images) // recipe.batch
    done, seconds, right = 0, 0.0, 0.0
    for epoch in range(1, args.epochs + 1):
        if args.paced:
            sys.stdin.readline()
        start, losses = time.perf_counter(), []
        for images, labels in batches(data.train_images, data.train_labels, recipe.batch, rng, recipe.shift, recipe.flip):
            losses.append(step(images, labels, recipe.rate_at(done, args.epochs * per_epoch)))
            done += 1
        took = time.perf_counter() - start
        seconds += took
        right = accuracy(classify, data)
        print(json.dumps({"epoch": epoch, "loss": round(float(np.mean(losses)), 4), "accuracy": round(right, 4),
                          "seconds": round(took, 2)}), flush=True)
    print(f"{recipe.name}: {right:.2%} of {len(data.test_images)} test images right, {seconds:.1f} s of training", flush=True)
    if not args.images and args.epochs >= recipe.epochs and right < recipe.promise:
        raise SystemExit(f"[recipes] {right:.2%} is below the promised {recipe.promise:.1%}")


def accuracy(classify: Classify, data: Images, size: int = 500) -> float:
    right = 0
    for first in range(0, len(data.test_images), size):
        part = slice(first, first + size)
        right += int((classify(scaled(data.test_images[part])) == data.test_labels[part]).sum())
    return right / len(data.test_images)
