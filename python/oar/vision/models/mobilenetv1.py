"""MobileNetV1 (Howard and others, 2017)."""

from __future__ import annotations

from typing import Any

from oar import nn
from oar._C import Tensor
from oar.vision._layers import ConvNormActivation
from oar.vision.models._utils import load_weights

__all__ = ["MobileNetV1", "mobilenet_v1"]

# The blocks: name, channels that enter, channels that leave, stride.
_BLOCKS = (
    ("conv2_1", 32, 64, 1), ("conv2_2", 64, 128, 2),
    ("conv3_1", 128, 128, 1), ("conv3_2", 128, 256, 2),
    ("conv4_1", 256, 256, 1), ("conv4_2", 256, 512, 2),
    *((f"conv5_{i}", 512, 512, 1) for i in range(1, 6)), ("conv5_6", 512, 1024, 2),
    ("conv6", 1024, 1024, 1),
)  # fmt: skip


class DepthwiseSeparable(nn.Layer):
    """A 3 by 3 convolution of each channel, then one of 1 by 1 across channels."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self._depthwise_conv = ConvNormActivation(in_channels, in_channels, 3, stride, groups=in_channels)
        self._pointwise_conv = ConvNormActivation(in_channels, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self._pointwise_conv(self._depthwise_conv(x))


class MobileNetV1(nn.Layer):
    """MobileNetV1: convolutions that are split into depthwise and pointwise ones.

    Args:
        scale: a factor of all widths.
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.MobileNetV1(scale=0.25, num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.scale = scale
        self.num_classes = num_classes
        self.with_pool = with_pool
        self.conv1 = ConvNormActivation(3, int(32 * scale), 3, stride=2)
        for name, entering, leaving, stride in _BLOCKS:
            self.add_sublayer(name, DepthwiseSeparable(int(entering * scale), int(leaving * scale), stride))
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.fc = nn.Linear(int(1024 * scale), num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width].
        """
        x = self.conv1(x)
        for name, *_ in _BLOCKS:
            x = getattr(self, name)(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v1(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV1:
    """MobileNetV1.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache;
            there are some for a scale of 1.0.
        scale: a factor of all widths.
        **kwargs: arguments of :class:`MobileNetV1`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> oar.vision.models.mobilenet_v1(scale=0.25)(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    model = MobileNetV1(scale=scale, **kwargs)
    if pretrained:
        load_weights(model, f"mobilenetv1_{scale}")
    return model
