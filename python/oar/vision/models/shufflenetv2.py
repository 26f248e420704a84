"""ShuffleNetV2 (Ma and others, 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oar import concat, nn, split
from oar._C import Tensor
from oar.nn import functional as F
from oar.vision._layers import ConvNormActivation
from oar.vision.models._utils import load_weights

__all__ = [
    "ShuffleNetV2", "shufflenet_v2_swish", "shufflenet_v2_x0_25", "shufflenet_v2_x0_33", "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "shufflenet_v2_x2_0",
]  # fmt: skip

# By scale: the channels of the three stages and of the last convolution.
_WIDTHS = {
    0.25: (24, 48, 96, 512),
    0.33: (32, 64, 128, 512),
    0.5: (48, 96, 192, 1024),
    1.0: (116, 232, 464, 1024),
    1.5: (176, 352, 704, 1024),
    2.0: (224, 488, 976, 2048),
}
_COUNTS = (4, 8, 4)  # the units of the stages
_ACTIVATIONS: dict[str | None, Callable[..., nn.Layer] | None] = {"relu": nn.ReLU, "swish": nn.Swish, None: None}


def _depthwise(channels: int, stride: int) -> ConvNormActivation:
    return ConvNormActivation(channels, channels, 3, stride, groups=channels, activation_layer=None)


class InvertedResidual(nn.Layer):
    """A unit that changes half of the channels and then mixes both halves."""

    def __init__(self, channels: int, activation: Callable[..., nn.Layer] | None) -> None:
        super().__init__()
        half = channels // 2
        self._conv_pw = ConvNormActivation(half, half, 1, activation_layer=activation)
        self._conv_dw = _depthwise(half, 1)
        self._conv_linear = ConvNormActivation(half, half, 1, activation_layer=activation)

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = split(x, 2, axis=1)
        changed = self._conv_linear(self._conv_dw(self._conv_pw(changed)))
        return F.channel_shuffle(concat([kept, changed], axis=1), 2)


class InvertedResidualDS(nn.Layer):
    """A unit that halves the size: two paths read all channels."""

    def __init__(self, entering: int, leaving: int, activation: Callable[..., nn.Layer] | None) -> None:
        super().__init__()
        half = leaving // 2
        self._conv_dw_1 = _depthwise(entering, 2)
        self._conv_linear_1 = ConvNormActivation(entering, half, 1, activation_layer=activation)
        self._conv_pw_2 = ConvNormActivation(entering, half, 1, activation_layer=activation)
        self._conv_dw_2 = _depthwise(half, 2)
        self._conv_linear_2 = ConvNormActivation(half, half, 1, activation_layer=activation)

    def forward(self, x: Tensor) -> Tensor:
        first = self._conv_linear_1(self._conv_dw_1(x))
        second = self._conv_linear_2(self._conv_dw_2(self._conv_pw_2(x)))
        return F.channel_shuffle(concat([first, second], axis=1), 2)


class ShuffleNetV2(nn.Layer):
    """ShuffleNetV2: units that change half of the channels at a time.

    Args:
        scale: the width of the network: 0.25, 0.33, 0.5, 1.0, 1.5 or 2.0.
        act: the activation: 'relu', 'swish' or None.
        num_classes: the classes that it tells apart; not above 0: no linear layer.
        with_pool: whether each channel is averaged.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.ShuffleNetV2(scale=0.25, num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(
        self, scale: float = 1.0, act: str | None = "relu", num_classes: int = 1000, with_pool: bool = True
    ) -> None:  # fmt: skip
        super().__init__()
        if scale not in _WIDTHS:
            raise NotImplementedError(f"[ShuffleNetV2] scale is {scale}; it can be {', '.join(map(str, _WIDTHS))}.")
        if act not in _ACTIVATIONS:
            raise RuntimeError(f"[ShuffleNetV2] act is {act!r}; it can be 'relu', 'swish' or None.")
        self.scale = scale
        self.num_classes = num_classes
        self.with_pool = with_pool
        activation = _ACTIVATIONS[act]
        *widths, last = _WIDTHS[scale]
        self._conv1 = ConvNormActivation(3, 24, 3, 2, activation_layer=activation)
        self._max_pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=1)
        self._units: list[str] = []
        channels = 24
        for stage, (width, count) in enumerate(zip(widths, _COUNTS), 2):
            self._add(f"{stage}_1", InvertedResidualDS(channels, width, activation))
            for i in range(1, count):
                self._add(f"{stage}_{i + 1}", InvertedResidual(width, activation))
            channels = width
        self._last_conv = ConvNormActivation(channels, last, 1, activation_layer=activation)
        if with_pool:
            self._pool2d_avg = nn.AdaptiveAvgPool2D(1)
        if num_classes > 0:
            self._fc = nn.Linear(last, num_classes)

    def _add(self, name: str, unit: nn.Layer) -> None:
        self.add_sublayer(name, unit)
        self._units.append(name)

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            inputs: images [batch, 3, height, width].
        """
        x = self._max_pool(self._conv1(inputs))
        for name in self._units:
            x = getattr(self, name)(x)
        x = self._last_conv(x)
        if self.with_pool:
            x = self._pool2d_avg(x)
        return self._fc(x.flatten(1)) if self.num_classes > 0 else x


def _shufflenet(
    arch: str, scale: float, pretrained: bool, kwargs: dict[str, Any], act: str | None = None
) -> ShuffleNetV2:  # fmt: skip
    if act is not None:
        kwargs["act"] = act
    model = ShuffleNetV2(scale=scale, **kwargs)
    if pretrained:
        load_weights(model, arch)
    return model


def shufflenet_v2_x0_25(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 0.25.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`ShuffleNetV2`, other than scale.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x0_25()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x0_25", 0.25, pretrained, kwargs)


def shufflenet_v2_x0_33(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 0.33. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x0_33()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x0_33", 0.33, pretrained, kwargs)


def shufflenet_v2_x0_5(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 0.5. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x0_5()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x0_5", 0.5, pretrained, kwargs)


def shufflenet_v2_x1_0(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 1.0. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x1_0()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x1_0", 1.0, pretrained, kwargs)


def shufflenet_v2_x1_5(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 1.5. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x1_5()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x1_5", 1.5, pretrained, kwargs)


def shufflenet_v2_x2_0(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 2.0. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_x2_0()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_x2_0", 2.0, pretrained, kwargs)


def shufflenet_v2_swish(pretrained: bool = False, **kwargs: Any) -> ShuffleNetV2:
    """ShuffleNetV2 of scale 1.0 with the activation swish. The arguments are those of :func:`shufflenet_v2_x0_25`.

    Examples:
        >>> import oar
        >>> oar.vision.models.shufflenet_v2_swish()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _shufflenet("shufflenet_v2_swish", 1.0, pretrained, kwargs, act="swish")
