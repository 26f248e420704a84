"""The part of the recipes that is Oar's: a captured training step and the classes that a network finds."""

from __future__ import annotations

import numpy as np

import oar
from oar import nn
from settings import Recipe, arguments, run


def convolution(inputs: int, outputs: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    """A convolution with a batch norm."""
    return nn.Sequential(
        nn.Conv2D(inputs, outputs, size, stride, padding=size // 2, bias_attr=False,
                  weight_attr=nn.initializer.KaimingNormal()),
        nn.BatchNorm2D(outputs))


def train(recipe: Recipe, make: type[nn.Layer], description: str | None) -> None:
    """Train a network by a recipe, as the command line wants it."""
    args = arguments(recipe, description)
    oar.seed(args.seed)
    net = make()
    optimizer = oar.optimizer.Momentum(recipe.rate, 0.9, net.parameters(), use_nesterov=True, weight_decay=recipe.decay)

    @oar.jit.to_static
    def update(images: oar.Tensor, labels: oar.Tensor) -> oar.Tensor:
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    @oar.jit.to_static
    def found(images: oar.Tensor) -> oar.Tensor:
        return net(images).argmax(axis=1)

    def step(images: np.ndarray, labels: np.ndarray, rate: float) -> float:
        optimizer.set_lr(rate)
        return float(update(oar.to_tensor(images), oar.to_tensor(labels)))

    def classify(images: np.ndarray) -> np.ndarray:
        net.eval()
        with oar.no_grad():
            classes = found(oar.to_tensor(images)).numpy()
        net.train()
        return classes

    run(recipe, args, step, classify)
