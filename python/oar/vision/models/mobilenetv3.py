"""MobileNetV3 (Howard and others, 2019)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from oar import nn
from oar._C import Tensor
from oar.vision._layers import ConvNormActivation
from oar.vision.models._utils import _make_divisible, load_weights

__all__ = ["MobileNetV3Large", "MobileNetV3Small", "mobilenet_v3_large", "mobilenet_v3_small"]


class _Row(NamedTuple):
    """A block: channels that enter, window, channels inside, channels that leave, whether channels are weighted by
    squeeze and excitation, the activation, and the stride."""

    entering: int
    kernel: int
    inside: int
    leaving: int
    weighted: bool
    activation: Callable[..., nn.Layer]
    stride: int

    def scaled(self, scale: float) -> _Row:
        return self._replace(entering=_make_divisible(self.entering * scale), inside=_make_divisible(self.inside * scale),
                             leaving=_make_divisible(self.leaving * scale))  # fmt: skip


_SMALL = (
    _Row(16, 3, 16, 16, True, nn.ReLU, 2),
    _Row(16, 3, 72, 24, False, nn.ReLU, 2),
    _Row(24, 3, 88, 24, False, nn.ReLU, 1),
    _Row(24, 5, 96, 40, True, nn.Hardswish, 2),
    _Row(40, 5, 240, 40, True, nn.Hardswish, 1),
    _Row(40, 5, 240, 40, True, nn.Hardswish, 1),
    _Row(40, 5, 120, 48, True, nn.Hardswish, 1),
    _Row(48, 5, 144, 48, True, nn.Hardswish, 1),
    _Row(48, 5, 288, 96, True, nn.Hardswish, 2),
    _Row(96, 5, 576, 96, True, nn.Hardswish, 1),
    _Row(96, 5, 576, 96, True, nn.Hardswish, 1),
)
_LARGE = (
    _Row(16, 3, 16, 16, False, nn.ReLU, 1),
    _Row(16, 3, 64, 24, False, nn.ReLU, 2),
    _Row(24, 3, 72, 24, False, nn.ReLU, 1),
    _Row(24, 5, 72, 40, True, nn.ReLU, 2),
    _Row(40, 5, 120, 40, True, nn.ReLU, 1),
    _Row(40, 5, 120, 40, True, nn.ReLU, 1),
    _Row(40, 3, 240, 80, False, nn.Hardswish, 2),
    _Row(80, 3, 200, 80, False, nn.Hardswish, 1),
    _Row(80, 3, 184, 80, False, nn.Hardswish, 1),
    _Row(80, 3, 184, 80, False, nn.Hardswish, 1),
    _Row(80, 3, 480, 112, True, nn.Hardswish, 1),
    _Row(112, 3, 672, 112, True, nn.Hardswish, 1),
    _Row(112, 5, 672, 160, True, nn.Hardswish, 2),
    _Row(160, 5, 960, 160, True, nn.Hardswish, 1),
    _Row(160, 5, 960, 160, True, nn.Hardswish, 1),
)


class SqueezeExcitation(nn.Layer):
    """Multiplies each channel by a weight that follows from the means of all channels."""

    def __init__(
        self,
        input_channels: int,
        squeeze_channels: int,
        activation: Callable[..., nn.Layer] = nn.ReLU,
        scale_activation: Callable[..., nn.Layer] = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2D(1)
        self.fc1 = nn.Conv2D(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2D(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def forward(self, x: Tensor) -> Tensor:
        squeezed = self.activation(self.fc1(self.avgpool(x)))
        return self.scale_activation(self.fc2(squeezed)) * x


class InvertedResidual(nn.Layer):
    """A wide depthwise convolution between two of 1 by 1, beside a shortcut where the shape stays."""

    def __init__(self, row: _Row, norm_layer: Callable[..., nn.Layer]) -> None:
        super().__init__()
        self.use_res_connect = row.stride == 1 and row.entering == row.leaving
        self.expand = row.entering != row.inside
        self.use_se = row.weighted
        if self.expand:
            self.expand_conv = ConvNormActivation(row.entering, row.inside, 1, norm_layer=norm_layer,
                                                  activation_layer=row.activation)  # fmt: skip
        self.bottleneck_conv = ConvNormActivation(row.inside, row.inside, row.kernel, row.stride, groups=row.inside,
                                                  norm_layer=norm_layer, activation_layer=row.activation)  # fmt: skip
        if self.use_se:
            self.mid_se = SqueezeExcitation(row.inside, _make_divisible(row.inside // 4), scale_activation=nn.Hardsigmoid)
        self.linear_conv = ConvNormActivation(row.inside, row.leaving, 1, norm_layer=norm_layer, activation_layer=None)

    def forward(self, x: Tensor) -> Tensor:
        y = self.expand_conv(x) if self.expand else x
        y = self.bottleneck_conv(y)
        if self.use_se:
            y = self.mid_se(y)
        y = self.linear_conv(y)
        return x + y if self.use_res_connect else y


class MobileNetV3(nn.Layer):
    """What the small and the large network share."""

    def __init__(
        self, config: tuple[_Row, ...], last_channel: int, scale: float, num_classes: int, with_pool: bool
    ) -> None:  # fmt: skip
        super().__init__()
        self.scale = scale
        self.num_classes = num_classes
        self.with_pool = with_pool
        self.last_channel = _make_divisible(last_channel * scale)
        rows = [row.scaled(scale) for row in config]
        norm = partial(nn.BatchNorm2D, epsilon=0.001, momentum=0.99)
        self.conv = ConvNormActivation(3, rows[0].entering, 3, 2, norm_layer=norm, activation_layer=nn.Hardswish)
        self.blocks = nn.Sequential(*[InvertedResidual(row, norm) for row in rows])
        width = rows[-1].leaving
        self.lastconv = ConvNormActivation(width, 6 * width, 1, norm_layer=norm, activation_layer=nn.Hardswish)
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(6 * width, self.last_channel), nn.Hardswish(), nn.Dropout(p=0.2),
                nn.Linear(self.last_channel, num_classes),
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width].
        """
        x = self.lastconv(self.blocks(self.conv(x)))
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


class MobileNetV3Small(MobileNetV3):
    """The small MobileNetV3.

    Args:
        scale: a factor of all widths.
        num_classes: the classes that it tells apart; not above 0: no linear layers.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.MobileNetV3Small(scale=0.5, num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_SMALL, 1024, scale, num_classes, with_pool)


class MobileNetV3Large(MobileNetV3):
    """The large MobileNetV3.

    Args:
        scale: a factor of all widths.
        num_classes: the classes that it tells apart; not above 0: no linear layers.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.MobileNetV3Large(scale=0.5, num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(self, scale: float = 1.0, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__(_LARGE, 1280, scale, num_classes, with_pool)


def mobilenet_v3_small(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Small:
    """The small MobileNetV3.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache;
            there are some for a scale of 1.0.
        scale: a factor of all widths.
        **kwargs: arguments of :class:`MobileNetV3Small`.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> oar.vision.models.mobilenet_v3_small(scale=0.5)(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    model = MobileNetV3Small(scale=scale, **kwargs)
    if pretrained:
        load_weights(model, f"mobilenet_v3_small_x{scale}")
    return model


def mobilenet_v3_large(pretrained: bool = False, scale: float = 1.0, **kwargs: Any) -> MobileNetV3Large:
    """The large MobileNetV3. The arguments are those of :func:`mobilenet_v3_small`.

    Examples:
        >>> import oar
        >>> oar.vision.models.mobilenet_v3_large(scale=0.5)(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    model = MobileNetV3Large(scale=scale, **kwargs)
    if pretrained:
        load_weights(model, f"mobilenet_v3_large_x{scale}")
    return model
