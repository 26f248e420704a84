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


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = convolution(channels, channels), convolution(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.relu(self.second(F.relu(self.first(x))))


class Scale(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0.125


def halved(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(convolution(inputs, outputs), nn.ReLU(), nn.MaxPool2d(2))


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
        convolution(3, 32), nn.ReLU(), halved(32, 64), Residual(64), halved(64, 128), halved(128, 256), Residual(256),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), linear(256, 10), Scale()),
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
