"""Handwritten digits (MNIST): at least 99.2 % of the test images right."""

from __future__ import annotations

import oar
from oar import nn
from settings import RECIPES
from training import convolution, train


class Net(nn.Layer):
    """Two convolutions with pooling, then two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(convolution(1, 32), nn.ReLU(), nn.MaxPool2D(2),
                                      convolution(32, 64), nn.ReLU(), nn.MaxPool2D(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, images: oar.Tensor) -> oar.Tensor:
        return self.head(self.features(images))


if __name__ == "__main__":
    train(RECIPES["mnist"], Net, __doc__)
