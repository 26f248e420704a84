"""Small photographs (CIFAR-10): at least 90 % of the test images right, with a small residual network."""

from __future__ import annotations

import oar
from oar import nn
from oar.nn import functional as F
from settings import RECIPES
from training import convolution, train


class Block(nn.Layer):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = convolution(inputs, outputs, 3, stride), convolution(outputs, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else convolution(inputs, outputs, 1, stride)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return F.relu(self.shortcut(x) + self.second(F.relu(self.first(x))))


class Net(nn.Layer):
    """A stem and six blocks of 32, 64 and 128 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = convolution(3, 32)
        self.blocks = nn.Sequential(Block(32, 32, 1), Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1),
                                    Block(64, 128, 2), Block(128, 128, 1))
        self.head = nn.Linear(128, 10)

    def forward(self, images: oar.Tensor) -> oar.Tensor:
        return self.head(self.blocks(F.relu(self.stem(images))).mean(axis=[2, 3]))


if __name__ == "__main__":
    train(RECIPES["cifar10"], Net, __doc__)
