"""LeNet (LeCun and others, 1998)."""

from __future__ import annotations

from oar import nn
from oar._C import Tensor

__all__ = ["LeNet"]


class LeNet(nn.Layer):
    """LeNet, for images of digits: two convolutions and three linear layers.

    Args:
        num_classes: the classes that it tells apart; not above 0: the features without the linear layers.

    Examples:
        >>> import oar
        >>> oar.vision.models.LeNet()(oar.zeros([1, 1, 28, 28])).shape
        [1, 10]
    """

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2, 2),
        )  # fmt: skip
        if num_classes > 0:
            self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            inputs: images [batch, 1, 28, 28].
        """
        features = self.features(inputs)
        return self.fc(features.flatten(1)) if self.num_classes > 0 else features
