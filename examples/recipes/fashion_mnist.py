"""Clothes (FashionMNIST): at least 92 % of the test images right."""

from __future__ import annotations

import oar
from oar import nn
from settings import RECIPES
from training import convolution, train


class Net(nn.Layer):
    """Four convolutions; the mean over the picture is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            convolution(1, 32), nn.ReLU(), nn.MaxPool2D(2), convolution(32, 64), nn.ReLU(),
            convolution(64, 64), nn.ReLU(), nn.MaxPool2D(2), convolution(64, 128), nn.ReLU())
        self.head = nn.Linear(128, 10)

    def forward(self, images: oar.Tensor) -> oar.Tensor:
        return self.head(self.features(images).mean(axis=[2, 3]))


if __name__ == "__main__":
    train(RECIPES["fashion_mnist"], Net, __doc__)
