"""AlexNet (Krizhevsky and others, 2012)."""

from __future__ import annotations

from typing import Any

from oar import nn
from oar._C import Tensor
from oar.framework import ParamAttr
from oar.nn import functional as F
from oar.vision.models._utils import load_weights

__all__ = ["AlexNet", "alexnet"]


def _uniform(fan_in: int) -> dict[str, Any]:
    """Weights and bias that begin between -1/sqrt(fan_in) and 1/sqrt(fan_in)."""
    bound = fan_in**-0.5
    return {attr: ParamAttr(initializer=nn.initializer.Uniform(-bound, bound)) for attr in ("weight_attr", "bias_attr")}


def _convolution(channels: int, filters: int, size: int, stride: int, padding: int) -> nn.Layer:
    return nn.Conv2D(channels, filters, size, stride, padding, **_uniform(channels * size * size))


class ConvPoolLayer(nn.Layer):
    """A convolution, ReLU and the largest of each 3 by 3 window."""

    def __init__(self, channels: int, filters: int, size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self._conv = _convolution(channels, filters, size, stride, padding)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=0)

    def forward(self, inputs: Tensor) -> Tensor:
        return self._pool(self.relu(self._conv(inputs)))


class AlexNet(nn.Layer):
    """AlexNet: five convolutions and three linear layers.

    Args:
        num_classes: the classes that it tells apart; not above 0: the features without the linear layers.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.AlexNet(num_classes=0)
        >>> net(oar.zeros([1, 3, 224, 224])).shape
        [1, 256, 6, 6]
    """

    def __init__(self, num_classes: int = 1000) -> None:
        super().__init__()
        self.num_classes = num_classes
        self._conv1 = ConvPoolLayer(3, 64, 11, 4, 2)
        self._conv2 = ConvPoolLayer(64, 192, 5, 1, 2)
        self._conv3 = _convolution(192, 384, 3, 1, 1)
        self._conv4 = _convolution(384, 256, 3, 1, 1)
        self._conv5 = ConvPoolLayer(256, 256, 3, 1, 1)
        if num_classes > 0:
            features = 256 * 6 * 6
            self._drop1 = nn.Dropout(p=0.5, mode="downscale_in_infer")
            self._fc6 = nn.Linear(features, 4096, **_uniform(features))
            self._drop2 = nn.Dropout(p=0.5, mode="downscale_in_infer")
            self._fc7 = nn.Linear(4096, 4096, **_uniform(features))
            self._fc8 = nn.Linear(4096, num_classes, **_uniform(features))

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            inputs: images [batch, 3, 224, 224].
        """
        x = self._conv2(self._conv1(inputs))
        x = F.relu(self._conv4(F.relu(self._conv3(x))))
        x = self._conv5(x)
        if self.num_classes > 0:
            x = F.relu(self._fc6(self._drop1(x.flatten(1))))
            x = F.relu(self._fc7(self._drop2(x)))
            x = self._fc8(x)
        return x


def alexnet(pretrained: bool = False, **kwargs: Any) -> AlexNet:
    """AlexNet.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`AlexNet`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.alexnet()
        ...
        >>> sum(p.size for p in net.parameters())
        61100840
    """
    model = AlexNet(**kwargs)
    if pretrained:
        load_weights(model, "alexnet")
    return model
