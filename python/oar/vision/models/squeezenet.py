"""SqueezeNet (Iandola and others, 2016)."""

from __future__ import annotations

from typing import Any

from oar import concat, nn
from oar._C import ArgumentValueError, Tensor
from oar.nn import functional as F
from oar.vision.models._utils import load_weights

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# The fire modules: channels that enter, that are squeezed, and that each of the two expansions returns.
_FIRES = ((128, 16, 64), (128, 32, 128), (256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256))
# By version: channels, window and padding of the first convolution, and the fire modules that pooling follows.
_VERSIONS = {"1.0": (96, 7, 0, (3, 7)), "1.1": (64, 3, 1, (2, 4))}


class MakeFireConv(nn.Layer):
    """A convolution and ReLU."""

    def __init__(self, channels: int, filters: int, size: int, padding: int = 0) -> None:
        super().__init__()
        self._conv = nn.Conv2D(channels, filters, size, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self._conv(x))


class MakeFire(nn.Layer):
    """A fire module: few channels by a 1 by 1 convolution, then many by two convolutions side by side."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self._conv = MakeFireConv(channels, squeezed, 1)
        self._conv_path1 = MakeFireConv(squeezed, expanded, 1)
        self._conv_path2 = MakeFireConv(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self._conv(x)
        return concat([self._conv_path1(x), self._conv_path2(x)], axis=1)


class SqueezeNet(nn.Layer):
    """SqueezeNet: eight fire modules.

    Args:
        version: '1.0' or '1.1', which takes less than half the time.
        num_classes: the classes that it tells apart; not above 0: no last convolution.
        with_pool: whether each channel is averaged, after a last ReLU.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.SqueezeNet('1.1', num_classes=10)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 10]
    """

    def __init__(self, version: str, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        if version not in _VERSIONS:
            raise ArgumentValueError(f"[SqueezeNet] version is {version!r}; it can be '1.0' or '1.1'.")
        self.version = version
        self.num_classes = num_classes
        self.with_pool = with_pool
        channels, size, padding, self._pooled = _VERSIONS[version]
        self._conv = nn.Conv2D(3, channels, size, stride=2, padding=padding)
        self._pool = nn.MaxPool2D(kernel_size=3, stride=2, padding=0)
        for i, sizes in enumerate(((channels, 16, 64), *_FIRES), 1):
            self.add_sublayer(f"_conv{i}", MakeFire(*sizes))
        if num_classes > 0:
            self._drop = nn.Dropout(p=0.5, mode="downscale_in_infer")
            self._conv9 = nn.Conv2D(512, num_classes, 1)
        self._avg_pool = nn.AdaptiveAvgPool2D(1)

    def forward(self, inputs: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            inputs: images [batch, 3, height, width].
        """
        x = self._pool(F.relu(self._conv(inputs)))
        for i in range(1, 9):
            x = getattr(self, f"_conv{i}")(x)
            if i in self._pooled:
                x = self._pool(x)
        if self.num_classes > 0:
            x = self._conv9(self._drop(x))
        return self._avg_pool(F.relu(x)).squeeze([2, 3]) if self.with_pool else x


def _squeezenet(arch: str, version: str, pretrained: bool, kwargs: dict[str, Any]) -> SqueezeNet:
    model = SqueezeNet(version, **kwargs)
    if pretrained:
        load_weights(model, arch)
    return model


def squeezenet1_0(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache.
        **kwargs: arguments of :class:`SqueezeNet`, other than version.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> oar.vision.models.squeezenet1_0()(oar.zeros([1, 3, 40, 40])).shape
        [1, 1000]
    """
    return _squeezenet("squeezenet1_0", "1.0", pretrained, kwargs)


def squeezenet1_1(pretrained: bool = False, **kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1. The arguments are those of :func:`squeezenet1_0`.

    Examples:
        >>> import oar
        >>> oar.vision.models.squeezenet1_1()(oar.zeros([1, 3, 32, 32])).shape
        [1, 1000]
    """
    return _squeezenet("squeezenet1_1", "1.1", pretrained, kwargs)
