"""A recipe of examples/recipes with Oar and with PyTorch: accuracy of both, and the time of their training.

The epochs alternate, so that both share what else the machine does. Each side trains from its own random weights, on the
same batches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("mnist", "fashion_mnist", "cifar10")


class Side:
    """One library's training, which does an epoch when it is told to."""

    def __init__(self, title: str, command: list[str]) -> None:
        self.title, self.seconds, self.accuracy = title, 0.0, 0.0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def epoch(self) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("{"):
            if not line:
                raise SystemExit(f"[recipes] {self.title} ended with status {self.process.wait()}.")
        result = json.loads(line)
        self.seconds += result["seconds"]
        self.accuracy = result["accuracy"]
        return f"{self.title} loss {result['loss']:.4f}, {result['accuracy']:.2%} right, {result['seconds']:.1f} s"

    def finish(self) -> None:
        self.process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recipe", choices=NAMES)
    parser.add_argument("--torch", default="build/bench/torch/bin/python", help="a Python with PyTorch")
    parser.add_argument("--epochs", type=int, default=0, help="passes over the data (default: the recipe's)")
    parser.add_argument("--data", default="build/data", help="folder of the data (default build/data)")
    parser.add_argument("--images", type=int, default=0, help="train on this many images alone")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "examples" / "recipes"))
    from data import load
    from settings import RECIPES

    load(args.recipe, Path(args.data))  # fetched before both sides want it
    epochs = args.epochs or RECIPES[args.recipe].epochs
    options = ["--paced", "--epochs", str(epochs), "--data", args.data, "--images", str(args.images)]
    sides = [Side("Oar", [sys.executable, str(ROOT / "examples" / "recipes" / f"{args.recipe}.py"), *options]),
             Side("PyTorch", [args.torch, str(ROOT / "benchmarks" / "recipes_torch.py"), args.recipe, *options])]
    for epoch in range(epochs):
        order = sides if epoch % 2 == 0 else sides[::-1]
        print(f"epoch {epoch + 1}: " + "; ".join(side.epoch() for side in order), flush=True)
    for side in sides:
        side.finish()
    oar, torch = sides
    print(f"{args.recipe}: Oar {oar.accuracy:.2%} in {oar.seconds:.1f} s, PyTorch {torch.accuracy:.2%} in "
          f"{torch.seconds:.1f} s; PyTorch's time / Oar's = {torch.seconds / oar.seconds:.2f}")


if __name__ == "__main__":
    main()
