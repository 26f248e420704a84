"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar import nn
from oar._C import Tensor
from oar.vision.models._utils import load_weights

__all__ = ["VGG", "vgg11", "vgg13", "vgg16", "vgg19"]

# How many convolutions each of the five stages has.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS = (64, 128, 256, 512, 512)


class VGG(nn.Layer):
    """VGG: stages of 3 by 3 convolutions, each halved by pooling, and three linear layers.

    Args:
        features: the stages, a layer that returns 512 channels.
        num_classes: the classes that it tells apart; not above 0: no linear layers.
        with_pool: whether the features are averaged to 7 by 7.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = oar.vision.models.VGG(nn.Conv2D(3, 512, 3), num_classes=0)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 512, 7, 7]
    """

    def __init__(self, features: nn.Layer, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.features = features
        self.num_classes = num_classes
        self.with_pool = with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(),
                nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(),
                nn.Linear(4096, num_classes),
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes.

        Args:
            x: images [batch, 3, height, width].
        """
        x = self.features(x)
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """The layers for a list of widths of convolutions, in which 'M' stands for pooling."""
    layers: list[nn.Layer] = []
    channels = 3
    for entry in cfg:
        if isinstance(entry, str):
            layers.append(nn.MaxPool2D(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2D(channels, entry, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2D(entry))
        layers.append(nn.ReLU())
        channels = entry
    return nn.Sequential(*layers)


def _vgg(depth: int, batch_norm: bool, pretrained: bool, kwargs: dict[str, Any]) -> VGG:
    cfg: list[int | str] = []
    for width, count in zip(_WIDTHS, _STAGES[depth]):
        cfg += [*[width] * count, "M"]
    model = VGG(make_layers(cfg, batch_norm), **kwargs)
    if pretrained:
        load_weights(model, f"vgg{depth}_bn" if batch_norm else f"vgg{depth}")
    return model


def vgg11(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 11 layers.

    Args:
        pretrained: whether it has trained weights, from the folder of ``oar.utils.download`` in the user's cache;
            the networks of 16 and 19 layers without norms have some.
        batch_norm: whether a batch norm follows each convolution.
        **kwargs: arguments of :class:`VGG`, other than features.

    Returns:
        the network.

    Examples:
        >>> import oar
        >>> net = oar.vision.models.vgg11(num_classes=0, with_pool=False)
        >>> net(oar.zeros([1, 3, 32, 32])).shape
        [1, 512, 1, 1]
    """
    return _vgg(11, batch_norm, pretrained, kwargs)


def vgg13(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 13 layers. The arguments are those of :func:`vgg11`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.vgg13()
        ...
        >>> sum(p.size for p in net.parameters())
        133047848
    """
    return _vgg(13, batch_norm, pretrained, kwargs)


def vgg16(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 16 layers. The arguments are those of :func:`vgg11`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.vgg16()
        ...
        >>> sum(p.size for p in net.parameters())
        138357544
    """
    return _vgg(16, batch_norm, pretrained, kwargs)


def vgg19(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
    """VGG of 19 layers. The arguments are those of :func:`vgg11`.

    Examples:
        >>> import oar
        >>> with oar.LazyGuard():
        ...     net = oar.vision.models.vgg19()
        ...
        >>> sum(p.size for p in net.parameters())
        143667240
    """
    return _vgg(19, batch_norm, pretrained, kwargs)
