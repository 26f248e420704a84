"""MobileNetV2 (Sandler and others, 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import nn
from oar._C import Tensor
from oar.vision._layers import ConvNormActivation
from oar.vision.models._utils import _make_divisible, load_weights

__all__ = ["MobileNetV2", "mobilenet_v2"]

# The stages: expansion, channels, blocks, stride of the first.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class InvertedResidual(nn.Layer):
    """A wide depthwise convolution between two of 1 by 1, beside a shortcut where the shape stays."""

    def __init__(
        self,
        inp: int,
        oup: int,
        stride: int,
        expand_ratio: float,
        norm_layer: Callable[..., nn.Layer] = nn.BatchNorm2D,
    ) -> None:
        super().__init__()
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        hidden = round(inp * expand_ratio)
        layers: list[nn.Layer] = []
        if expand_ratio != 1:
            layers.append(ConvNormActivation(inp, hidden, 1, norm_layer=norm_layer, activation_layer=nn.ReLU6))
        layers += [
            ConvNormActivation(hidden, hidden, 3, stride, groups=hidden, norm_layer=norm_layer, activation_layer=nn.ReLU6),
            nn.Conv2D(hidden, oup, 1, bias_attr=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Layer):
    """MobileNetV2: inverted residuals with linear bottlenecks.

    Args:
        scale: a factor of all widths.
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.MobileNetV2(scale=0.25, num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.with_pool = with_pool
        self.last_channel = _make_divisible(1280 * max(1.0, scale))
        channels = _make_divisible(32 * scale)
        layers: list[nn.Layer] = [ConvNormActivation(3, channels, stride=2, activation_layer=nn.ReLU6)]
        for expansion, width, count, stride in _STAGES:
            leaving = _make_divisible(width * scale)
            for i in range(count):
                layers.append(InvertedResidual(channels, leaving, stride if i == 0 else 1, expansion))
                channels = leaving
        layers.append(ConvNormActivation(channels, self.last_channel, 1, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        if with_pool:
            self.pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(self.last_channel, num_classes))

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width].
        """
        x = self.features(x)
        if self.with_pool:
            x = self.pool2d_avg(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def mobilenet_v2(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV2:
    """MobileNetV2.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache;
            there are some for a scale of 1.0.
        scale: a factor of all widths.
        **kwargs: arguments of :class:`MobileNetV2`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> oar.vision.models.mobilenet_v2(scale=0.25)(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    model = MobileNetV2(scale=scale, **kwargs)
    if pretrained:
        load_weights(model, f"mobilenetv2_{scale}")
    return model
