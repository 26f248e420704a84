"""The recipes of examples/recipes with PyTorch: the same networks, batches and learning rates. `recipes_torch.py mnist --help`.

Runs in an environment with PyTorch and NumPy; `benchmarks/recipes.py` runs it beside Oar.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "recipes"))
from settings import RECIPES, Recipe, arguments, run  # noqa: E402


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return nn.Sequential(layer, nn.BatchNorm2d(outputs))


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=(2, 3))


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.shortcut(x) + self.second(F.relu(self.first(x))))


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


NETWORKS = {
    "mnist": lambda: nn.Sequential(
        convolution(1, 32), nn.ReLU(), nn.MaxPool2d(2), convolution(32, 64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        linear(64 * 7 * 7, 128), nn.ReLU(), linear(128, 10)),
    "fashion_mnist": lambda: nn.Sequential(
        convolution(1, 32), nn.ReLU(), nn.MaxPool2d(2), convolution(32, 64), nn.ReLU(), convolution(64, 64), nn.ReLU(),
        nn.MaxPool2d(2), convolution(64, 128), nn.ReLU(), Mean(), linear(128, 10)),
    "cifar10": lambda: nn.Sequential(
        convolution(3, 32), nn.ReLU(), Block(32, 32, 1), Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1),
        Block(64, 128, 2), Block(128, 128, 1), Mean(), linear(128, 10)),
}


def train(recipe: Recipe) -> None:
    args = arguments(recipe, __doc__)
    torch.manual_seed(args.seed)
    net = NETWORKS[recipe.name]()
    optimizer = torch.optim.SGD(net.parameters(), recipe.rate, 0.9, nesterov=True, weight_decay=recipe.decay)

    def step(images: np.ndarray, labels: np.ndarray, rate: float) -> float:
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.from_numpy(images)), torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        return loss.item()

    def classify(images: np.ndarray) -> np.ndarray:
        net.eval()
        with torch.no_grad():
            classes = net(torch.from_numpy(images)).argmax(1).numpy()
        net.train()
        return classes

    run(recipe, args, step, classify)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in RECIPES:
        raise SystemExit(f"usage: recipes_torch.py {{{','.join(RECIPES)}}} [options]")
    train(RECIPES[sys.argv.pop(1)])
